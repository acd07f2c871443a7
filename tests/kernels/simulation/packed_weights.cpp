#include "kernels/simulation/packed_weights.hpp"

#include "cuda/kernels/sm100a_pair/packed_weights.hpp"
#include "cuda/kernels/sm90a/packed_weights.hpp"

namespace dualgemm::test {

::testing::AssertionResult PackedInSimulation::pack(const RandomCase& data, Simulation& simulation,
                                                    const ptxsim::Options& options, Format format) {
  namespace sm90a = cuda::sm90a;
  namespace sm100a_pair = cuda::sm100a_pair;
  const bool hopper = format == Format::kSm90a;
  buffers_ = simulation.buffers();
  units_ = static_cast<uint8_t*>(simulation.scratch(
      kName, hopper ? sm90a::packed_bytes(data.problem) : sm100a_pair::packed_bytes(data.problem)));
  auto result =
      simulation.run(hopper ? sm90a::pack_weights_launch(data.resolved, buffers_, units_)
                            : sm100a_pair::pack_weights_launch(data.resolved, buffers_, units_),
                     options);
  buffers_.gate = buffers_.up = nullptr;
  buffers_.gate_scales = buffers_.up_scales = nullptr;
  return result;
}

}  // namespace dualgemm::test
