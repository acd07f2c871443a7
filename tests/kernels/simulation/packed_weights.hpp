// Prepared weights of the Hopper (sm_80's, too), the Blackwell and the sm_120a kernels, packed in
// the interpreter by the kernels that do it.
#pragma once

#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

class PackedInSimulation {
 public:
  static constexpr const char* kName = "prepared weights";  // of the memory

  enum class Format { kSm90a, kSm100a, kSm120a };

  ::testing::AssertionResult pack(const RandomCase& data, Simulation& simulation,
                                  const ptxsim::Options& options, Format format = Format::kSm90a);

  // The simulation's, with null for all that was packed.
  const Buffers& buffers() const { return buffers_; }
  uint8_t* units() const { return units_; }  // null: nothing was packed

 private:
  Buffers buffers_;
  uint8_t* units_ = nullptr;
};

}  // namespace dualgemm::test
