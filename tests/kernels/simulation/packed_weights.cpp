#include "kernels/simulation/packed_weights.hpp"

#include "cuda/kernels/sm100a_pair/packed_weights.hpp"
#include "cuda/kernels/sm90a/packed_weights.hpp"

namespace dualgemm::test {

::testing::AssertionResult PackedInSimulation::pack(const RandomCase& data, Simulation& simulation,
                                                    const ptxsim::Options& options, Format format) {
  namespace sm90a = cuda::sm90a;
  namespace sm100a_pair = cuda::sm100a_pair;
  const bool hopper = format == Format::kSm90a;
  const Buffers& given = simulation.buffers();
  buffers_ = without_weights(given);
  units_ = static_cast<uint8_t*>(simulation.scratch(
      kName, hopper ? sm90a::packed_bytes(data.problem) : sm100a_pair::packed_bytes(data.problem)));
  return simulation.run(hopper ? sm90a::pack_weights_launch(data.resolved, given, units_)
                               : sm100a_pair::pack_weights_launch(data.resolved, given, units_),
                        options);
}

}  // namespace dualgemm::test
