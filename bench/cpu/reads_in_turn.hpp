// How much of the read bandwidth a call reaches: after each call the same number of bytes is read,
// plainly and by as many threads. The memory of a shared machine changes by a half within seconds
// (docs/lab/cpu.md), so that a median of calls over a peak of other seconds says as much of the
// neighbours as of the kernel; a call and the read beside it have the same neighbours.
#pragma once

#include <memory>
#include <vector>

#include "bench/cpu/gemm_case.hpp"
#include "tools/measure/order_statistics.hpp"
#include "tools/measure/peaks_loops.hpp"

namespace dualgemm::bench {

class ReadsInTurn {
 public:
  // Null where this machine has no read loop. `operands` must outlive it.
  static std::shared_ptr<ReadsInTurn> make(Operands& operands, std::shared_ptr<GemmCase> gemm,
                                           int threads);
  // One call, and one read of a weight set that was last touched half of all sets ago.
  Status run();

  // Read's time over the call's, median of all runs; no value: none yet.
  measure::Estimate share() const;
  int64_t runs() const { return static_cast<int64_t>(shares_.size()); }

 private:
  ReadsInTurn(Operands& operands, std::shared_ptr<GemmCase> gemm, const measure::ReadLoop& loop,
              int threads)
      : operands_(operands), gemm_(std::move(gemm)), loop_(loop), threads_(threads) {}
  void read(int set) const;

  Operands& operands_;
  std::shared_ptr<GemmCase> gemm_;
  const measure::ReadLoop& loop_;
  int threads_;
  std::vector<double> shares_;
};

}  // namespace dualgemm::bench
