#include "kernels/simulation/packed_weights.hpp"

#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm120a/packed_weights.hpp"

namespace dualgemm::test {
namespace {

struct Packing {
  int64_t (*bytes)(const Problem& problem);
  cuda::KernelLaunch (*launch)(const core::ResolvedProblem& problem, const Buffers& buffers,
                               uint8_t* out);
};

Packing packing_of(PackedInSimulation::Format format) {
  switch (format) {
    case PackedInSimulation::Format::kSm100a:
      return {cuda::blackwell::packed_bytes, cuda::blackwell::pack_weights_launch};
    case PackedInSimulation::Format::kSm120a:
      return {cuda::sm120a::packed_bytes, cuda::sm120a::pack_weights_launch};
    case PackedInSimulation::Format::kSm90a:
      break;
  }
  return {cuda::packed_bytes, cuda::pack_weights_launch};
}

}  // namespace

::testing::AssertionResult PackedInSimulation::pack(const RandomCase& data, Simulation& simulation,
                                                    const ptxsim::Options& options, Format format) {
  const Packing packing = packing_of(format);
  const Buffers& given = simulation.buffers();
  buffers_ = without_weights(given);
  units_ = static_cast<uint8_t*>(simulation.scratch(kName, packing.bytes(data.problem)));
  return simulation.run(packing.launch(data.resolved, given, units_), options);
}

}  // namespace dualgemm::test
