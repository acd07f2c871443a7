// As gated_1sm.cu, with the notes' visitor tree in the place of our store collective: SiLU, D fp16.
#include "cuda/cutlass/gemm.cuh"
#include "cuda/cutlass/visitor_store.cuh"

namespace dualgemm::cuda::gated {
namespace {

using Tree = GatedTree<cutlass::epilogue::thread::SiLu, cutlass::half_t>;
using Types = GatedGemm<1, VisitorStore<Tree, OutputType::kF16>>;

// A scalar for all batches, or one for each.
ScalarOfBatch::Arguments scalar_of(float scalar, const float* per_batch) {
  return {{scalar}, {per_batch}, {{{}, {}, int64_t{per_batch != nullptr}}}};
}

}  // namespace

extern "C" __global__ void __launch_bounds__(Types::Kernel::MaxThreadsPerBlock, 1)
    dual_gemm_cutlass_visitor_1sm(const __grid_constant__ Types::Kernel::Params params) {
  extern __shared__ char dynamic_smem[];
  Types::Kernel{}(params, dynamic_smem);
}

const Instance& visitor_1sm() {
  static constexpr const char* kEntry = "dual_gemm_cutlass_visitor_1sm";
  static const Instance instance{
      KernelId::kCutlassVisitor,
      kEntry,
      false,
      kHalfTile,
      Types::Mainloop::DispatchPolicy::Stages,
      [](const Gemm& gemm, EncodeTiled encode_tiled) {
        const EpilogueParams& p = gemm.epilogue;
        Types::Kernel::EpilogueArguments arguments{};
        arguments.place = p;
        arguments.tree = {// multiplies(act, up)
                          {{scalar_of(p.alpha_gate, p.alpha_gate_per_batch), {}, {}}, {}},
                          {scalar_of(p.alpha_up, p.alpha_up_per_batch), {}, {}},
                          {}};
        const Kernel kernel{"visitor_1sm", kEntry,
                            reinterpret_cast<const void*>(&dual_gemm_cutlass_visitor_1sm)};
        return launch_of<Types>(kernel, gemm, arguments, encode_tiled);
      }};
  return instance;
}

}  // namespace dualgemm::cuda::gated
