// The CUDA part of a submission for sm_100a: two instances of the kernel, and its launch cut to the
// challenge's operands, which tests/kernels/submission compares with the library's.
#include <span>

#include "cuda/kernels/blackwell/extents.hpp"
#include "cuda/kernels/sm100a/entries.cuh"
#include "tools/submission/call.hpp"

namespace dualgemm::cuda::sm100a {

#define DUALGEMM_SUBMITTED(X) X(64, 5, kF16, f16) X(128, 4, kF16, f16)
DUALGEMM_SUBMITTED(DUALGEMM_SM100A_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {DUALGEMM_SUBMITTED(DUALGEMM_SM100A_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a

namespace dualgemm::submission {
namespace {

namespace blackwell = cuda::blackwell;
namespace sm100a = cuda::sm100a;
using core::ceil_div;

const Device* current_device(const char** error) {
  return Device::current(100, sm100a::instances(), error);
}

int64_t workspace_bytes(const Operands&, int) { return 0; }

bool encode_maps(const Operands& o, int tile_n, EncodeTiled encode_tiled,
                 blackwell::Params& params) {
  return encode(rows_view(o.a, o.m, o.k, o.l, sm100a::kTileM), encode_tiled, &params.map_a) &&
         encode(scales_view(o.a_scales, o.m, o.k, o.l), encode_tiled, &params.map_sf_a) &&
         encode(rows_view(o.gate, o.n, o.k, o.l, tile_n), encode_tiled, &params.map_gate) &&
         encode(scales_view(o.gate_scales, o.n, o.k, o.l), encode_tiled, &params.map_sf_gate) &&
         encode(rows_view(o.up, o.n, o.k, o.l, tile_n), encode_tiled, &params.map_up) &&
         encode(scales_view(o.up_scales, o.n, o.k, o.l), encode_tiled, &params.map_sf_up);
}

Launches build(const Operands& o, int num_sms, uint8_t*, EncodeTiled encode_tiled) {
  const int tile_n = blackwell::choose_tile_n(o.m, o.n, o.l, num_sms);
  const sm100a::Instance& instance = sm100a::instances()[tile_n == 64 ? 0 : 1];
  const int64_t ctas = blackwell::num_ctas(o.m, o.n, o.l, tile_n);
  if (ctas > INT32_MAX) return {.error = "d must have at most 2^31 - 1 tiles"};
  blackwell::Params params{};
  set_epilogue(o, params);
  params.num_k_tiles = static_cast<uint32_t>(ceil_div(o.k, blackwell::kTileK));
  params.tiles_m = static_cast<uint32_t>(ceil_div(o.m, sm100a::kTileM));
  params.tiles_n = static_cast<uint32_t>(ceil_div(o.n, tile_n));
  if (!encode_maps(o, tile_n, encode_tiled, params))
    return {.error = "the driver refused a tensor map"};
  Launches launches;
  cuda::KernelLaunch launch{.kernel = {"dual_gemm_sm100a", instance.entry, instance.kernel},
                            .ctas = static_cast<uint32_t>(ctas),
                            .threads = instance.threads,
                            .dynamic_smem_bytes = instance.dynamic_smem_bytes};
  launch.set_params(params);
  launches.add(launch);
  return launches;
}

}  // namespace
}  // namespace dualgemm::submission
