#include "kernels/simulation/packed_weights.hpp"

#include "cuda/kernels/sm90a/packed_weights.hpp"

namespace dualgemm::test {

::testing::AssertionResult PackedInSimulation::pack(const RandomCase& data, Simulation& simulation,
                                                    const ptxsim::Options& options) {
  namespace sm90a = cuda::sm90a;
  buffers_ = without_weights(simulation.buffers());
  units_ = static_cast<uint8_t*>(simulation.scratch(kName, sm90a::packed_bytes(data.problem)));
  return simulation.run(sm90a::pack_weights_launch(data.resolved, simulation.buffers(), units_),
                        options);
}

}  // namespace dualgemm::test
