// The CUDA part of a submission for sm_90a: the instances of the kernel that the challenge's
// shapes are given to, the preparation of A, and both launches cut to the challenge's operands,
// which tests/kernels/submission compares with the library's.
#include <span>

#include "cuda/kernels/sm90a/entries.cuh"
#include "cuda/kernels/sm90a/prepare.cu"
#include "cuda/kernels/sm90a/tuned_choice.cpp"
#include "cuda/kernels/sm90a/tuning_table.cpp"
#include "tools/submission/call.hpp"

namespace dualgemm::cuda::sm90a {

#define DUALGEMM_SUBMITTED(X)                      \
  X(dual_gemm_sm90a, false, false, 128, 2, 1, f16) \
  X(dual_gemm_sm90a, false, false, 128, 3, 1, f16) \
  X(dual_gemm_sm90a, false, false, 256, 2, 1, f16)
DUALGEMM_SUBMITTED(DUALGEMM_SM90A_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {DUALGEMM_SUBMITTED(DUALGEMM_SM90A_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm90a

namespace dualgemm::submission {
namespace {

namespace sm90a = cuda::sm90a;
using core::ceil_div;
using core::round_up;
using cuda::Divisor;

const Device* current_device(const char** error) {
  return Device::current(90, sm90a::instances(), error);
}

// How a call runs on a GPU of `num_sms` SMs.
struct Choice {
  const sm90a::Instance& instance;
  int64_t tile_n, tiles_m, tiles_n, k_tiles;
  sm90a::Schedule schedule;
};

// Few rows, for which the library has tiles of their own, get the smaller one of those that are
// here.
Choice choose(const Operands& o, int num_sms) {
  const sm90a::Extents extents{o.m, o.n, o.k, o.l};
  const sm90a::TuningRow& row = sm90a::choose_row(sm90a::tuning_table(), extents, num_sms);
  const auto all = sm90a::instances();
  const sm90a::Instance& tuned = row.tile_m == 256 ? all[2] : all[0];
  const sm90a::Instance& instance =
      row.tile_m >= 128 && sm90a::takes_wide_tiles(tuned.config, extents, num_sms, false) ? all[1]
                                                                                          : tuned;
  const int64_t tile_n = sm90a::tile_n_of(instance.config);
  const int64_t tiles_m = ceil_div(o.m, instance.config.tile_m), tiles_n = ceil_div(o.n, tile_n);
  const int64_t k_tiles = ceil_div(o.k, sm90a::kTileK);
  return {instance,
          tile_n,
          tiles_m,
          tiles_n,
          k_tiles,
          sm90a::pair_or_deal_out(instance.config, tiles_m * tiles_n * o.l,
                                  Divisor(static_cast<uint32_t>(k_tiles)), num_sms, false)};
}

// Pieces of the workspace, as offsets.
struct Pieces {
  int64_t flags = 0, partials = 0, bytes = 0;  // A, decoded, comes first
};

Pieces pieces_of(const Operands& o, const Choice& choice) {
  constexpr int64_t kAlignment = 64, kBytes = 4;
  const int64_t ctas = choice.schedule.ctas;
  Pieces pieces;
  pieces.bytes = round_up(o.l * o.m * choice.k_tiles * sm90a::kTileK * 2, kAlignment);
  if (choice.schedule.shared_k_tiles == 0) return pieces;
  pieces.flags = pieces.bytes;
  pieces.partials = pieces.flags + round_up(ctas * kBytes, kAlignment);
  pieces.bytes =
      pieces.partials +
      round_up(ctas * choice.tile_n * 2 * choice.instance.config.tile_m * kBytes, kAlignment);
  return pieces;
}

int64_t workspace_bytes(const Operands& o, int num_sms) {
  return pieces_of(o, choose(o, num_sms)).bytes;
}

cuda::KernelLaunch preparation(const Operands& o, const Choice& choice, uint8_t* workspace) {
  sm90a::PrepareParams params{};
  params.a = o.a;
  params.scales = o.a_scales;
  params.out = workspace;
  params.flags = reinterpret_cast<uint32_t*>(workspace + pieces_of(o, choice).flags);
  params.row_bytes = o.k / 2;
  params.batch_bytes = o.m * o.k / 2;
  params.scale_batch_bytes = round_up(o.m, 128) * o.k / 16;
  params.k_tiles = Divisor(static_cast<uint32_t>(choice.k_tiles));
  params.m = Divisor(static_cast<uint32_t>(o.m));
  params.k = static_cast<uint32_t>(o.k);
  params.num_flags = choice.schedule.shared_k_tiles != 0 ? choice.schedule.ctas : 0;
  params.type = cuda::AType::kE2M1;
  params.row_pieces = static_cast<uint32_t>(o.m * o.l * choice.k_tiles);
  params.tile_m = Divisor(static_cast<uint32_t>(choice.instance.config.tile_m));
  return sm90a::prepare_launch(params);
}

// Decoded A: (l, 4 * k_tiles, m, 64) halves.
View activations_view(const Operands& o, const Choice& choice, const uint8_t* workspace) {
  const auto m = static_cast<uint64_t>(o.m), l = static_cast<uint64_t>(o.l);
  const auto subs = static_cast<uint64_t>(choice.k_tiles * sm90a::kSubs);
  return {CU_TENSOR_MAP_DATA_TYPE_UINT16,
          CU_TENSOR_MAP_SWIZZLE_128B,
          4,
          workspace,
          {sm90a::kSubK, m, subs, l},
          {sm90a::kRowBytes, m * sm90a::kRowBytes, m * subs * sm90a::kRowBytes},
          {sm90a::kSubK, static_cast<uint32_t>(choice.instance.config.tile_m),
           static_cast<uint32_t>(choice.instance.act_subs), 1}};
}

bool encode_maps(const Operands& o, const Choice& choice, const uint8_t* workspace,
                 EncodeTiled encode_tiled, sm90a::Params& params) {
  const auto rows = static_cast<uint32_t>(choice.tile_n);
  const uint32_t scale_tiles = sm90a::scale_tile_rows_of(choice.tile_n);
  const auto scales = [&](const uint8_t* of) {
    return scales_view(of, o.n, o.k, o.l, scale_tiles);
  };
  return encode(rows_view(o.gate, o.n, o.k, o.l, rows), encode_tiled, &params.map_gate) &&
         encode(scales(o.gate_scales), encode_tiled, &params.map_sf_gate) &&
         encode(rows_view(o.up, o.n, o.k, o.l, rows), encode_tiled, &params.map_up) &&
         encode(scales(o.up_scales), encode_tiled, &params.map_sf_up) &&
         encode(activations_view(o, choice, workspace), encode_tiled, &params.map_a);
}

Launches build(const Operands& o, int num_sms, uint8_t* workspace, EncodeTiled encode_tiled) {
  const Choice choice = choose(o, num_sms);
  if (choice.tiles_m * choice.tiles_n * o.l * choice.k_tiles > INT32_MAX ||
      o.m * o.l * choice.k_tiles > INT32_MAX) {
    return {.error = "there must be at most 2^31 - 1 tiles of 256 along k"};
  }
  const sm90a::Instance& instance = choice.instance;
  const Pieces pieces = pieces_of(o, choice);
  sm90a::Params params{};
  set_epilogue(o, params);
  params.partials = reinterpret_cast<float*>(workspace + pieces.partials);
  params.flags = reinterpret_cast<uint32_t*>(workspace + pieces.flags);
  params.tiles_m = Divisor(static_cast<uint32_t>(choice.tiles_m));
  params.tiles_n = Divisor(static_cast<uint32_t>(choice.tiles_n));
  params.schedule = choice.schedule;
  if (!encode_maps(o, choice, workspace, encode_tiled, params))
    return {.error = "the driver refused a tensor map"};
  Launches launches;
  launches.add(preparation(o, choice, workspace));
  cuda::KernelLaunch launch{.kernel = {"dual_gemm_sm90a", instance.entry, instance.kernel},
                            .ctas = choice.schedule.ctas,
                            .threads = instance.threads,
                            .dynamic_smem_bytes = instance.dynamic_smem_bytes,
                            .cluster_ctas = choice.schedule.paired ? 2u : 1u};
  launch.set_params(params);
  launches.add(launch);
  return launches;
}

}  // namespace
}  // namespace dualgemm::submission
