// fused on RTX 50 and DGX Spark with an A in NVFP4: block-scaled products of the tensor cores. With
// an A of 16 bits these GPUs take sm80's kernels.
#include "cuda/kernels/sm120a/launch.hpp"
#include "cuda/kernels/sm120a/packed_weights.hpp"
#include "cuda/strategies/fused_kernel.hpp"

namespace dualgemm::cuda {
namespace {

PreparedFormat format_of_sm120a(const Problem&) { return PreparedFormat::kSm120a; }

constexpr WeightPacking kPackingSm120a{format_of_sm120a, sm120a::packed_batch_bytes,
                                       sm120a::pack_weights_launch};

}  // namespace

const FusedKernel& fused_kernel_sm120a() {
  static const FusedKernel kernel{
      Isa::kSm120a,
      "16-blocks exact, four of them and the sum added with one truncation to FP32, steps in "
      "ascending k: the same bits for every tile and every m, prepared or not",
      sm120a::supports, nullptr, &kPackingSm120a};
  return kernel;
}

}  // namespace dualgemm::cuda
