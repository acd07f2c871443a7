#include "kernels/simulation/packed_weights.hpp"

#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/packed/packed_weights.hpp"

namespace dualgemm::test {

::testing::AssertionResult PackedInSimulation::pack(const RandomCase& data, Simulation& simulation,
                                                    const ptxsim::Options& options, Format format) {
  const bool hopper = format == Format::kSm90a;
  const Buffers& given = simulation.buffers();
  buffers_ = without_weights(given);
  units_ = static_cast<uint8_t*>(
      simulation.scratch(kName, hopper ? cuda::packed_bytes(data.problem)
                                       : cuda::blackwell::packed_bytes(data.problem)));
  return simulation.run(hopper ? cuda::pack_weights_launch(data.resolved, given, units_)
                               : cuda::blackwell::pack_weights_launch(data.resolved, given, units_),
                        options);
}

}  // namespace dualgemm::test
