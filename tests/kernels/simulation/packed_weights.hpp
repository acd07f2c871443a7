// Prepared weights of the Hopper kernels, packed in the interpreter by the kernel that does it.
#pragma once

#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

class PackedInSimulation {
 public:
  static constexpr const char* kName = "prepared weights";  // of the memory

  ::testing::AssertionResult pack(const RandomCase& data, Simulation& simulation,
                                  const ptxsim::Options& options);

  // The simulation's, with null for all that was packed.
  const Buffers& buffers() const { return buffers_; }
  const uint8_t* units() const { return units_; }  // null: nothing was packed

 private:
  Buffers buffers_;
  uint8_t* units_ = nullptr;
};

}  // namespace dualgemm::test
