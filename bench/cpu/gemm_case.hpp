// One dual GEMM to be timed, through the public API only: plan, prepared weights, workspace,
// output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/cpu/operands.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::bench {

struct GemmSpec {
  std::string name;
  int64_t m = 0;
  StrategyId strategy = StrategyId::kFused;
  Isa isa = Isa::kAuto;
  DataType a_type = DataType::kE2M1;
  DataType d_type = DataType::kF16;
  bool prepared = false;  // weights packed or decoded before the clock starts
  bool cold = false;      // runs take turns through all weight sets, so that no cache helps
  // Every weight set, prepared for any plan of this format; null: the case prepares the first set
  // for itself, and stays with it.
  std::shared_ptr<const std::vector<PreparedWeights>> prepared_sets = nullptr;
};

class GemmCase {
 public:
  // `operands` must outlive the case. Runs once, so that an error shows before anything is timed;
  // an instruction set that was demanded and did not run is an error.
  static Expected<std::shared_ptr<GemmCase>> make(Operands& operands, const GemmSpec& spec,
                                                  int threads);
  Status run();

  const GemmSpec& spec() const { return spec_; }
  const Plan& plan() const { return plan_; }
  const RunInfo& info() const { return info_; }
  double giga_ops() const;  // 4*m*n*k
  AlignedArray<std::byte>& d() { return d_; }
  int next_set() const { return next_set_; }  // of weights, that the next run reads

 private:
  GemmCase(Operands& operands, const GemmSpec& spec) : operands_(operands), spec_(spec) {}

  Operands& operands_;
  GemmSpec spec_;
  Plan plan_;
  RunInfo info_;
  std::shared_ptr<const std::vector<PreparedWeights>> prepared_;
  AlignedArray<std::byte> d_, workspace_;
  AlignedArray<uint8_t> d_scales_;
  int next_set_ = 0;
};

// The first `count` weight sets as `plan` wants them.
Expected<std::vector<PreparedWeights>> prepare_sets(Operands& operands, const Plan& plan,
                                                    int count);

}  // namespace dualgemm::bench
