// Top-k ids to rows of experts: a counting sort that keeps the order of the ids.
//
// Warps count their own part of the ids; where a warp's rows of an expert begin is what all experts
// before have, and what the warps before have of it. Then each warp goes through its part again, 32
// ids at a time, of which those of one expert take neighbouring rows. The second part is most of
// the work, so many ids are shared by CTAs, each of which counts all of them: nothing to wait for,
// and no second launch.
#include "cuda/kernels/common/make_group_tiles.cuh"
#include "cuda/kernels/experts/routing_kernels.hpp"
#include "cuda/kernels/experts/row_weight.cuh"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda {
namespace {

constexpr uint32_t kWholeWarp = 0xFFFFFFFFu;

constexpr uint32_t kNoId = ~0u;  // instead of an expert: behind the warp's last id
// Ids of a lane whose loads are under way at once.
constexpr int kIdsAtOnce = 8;

__device__ int64_t id_at(const RouteParams& p, uint32_t index) {
  return p.wide_ids ? static_cast<const int64_t*>(p.ids)[index]
                    : static_cast<const int32_t*>(p.ids)[index];
}

// `experts`: none.
__device__ uint32_t expert_of(const RouteParams& p, int64_t id) {
  if (p.named_experts == 0)
    return static_cast<uint64_t>(id) < p.experts ? static_cast<uint32_t>(id) : p.experts;
  if (static_cast<uint64_t>(id) >= p.named_experts) return p.experts;
  return min(static_cast<uint32_t>(p.expert_map[id]), p.experts);
}

// The experts of ids first + lane, first + 32 + lane, ...
struct SomeExperts {
  uint32_t of[kIdsAtOnce];
  __device__ SomeExperts(const RouteParams& p, uint32_t first, uint32_t end) {
    int64_t ids[kIdsAtOnce];
#pragma unroll
    for (int i = 0; i < kIdsAtOnce; ++i) {
      const uint32_t index = first + 32 * i + threadIdx.x % 32;
      ids[i] = index < end ? id_at(p, index) : -1;
    }
#pragma unroll
    for (int i = 0; i < kIdsAtOnce; ++i) {
      const uint32_t index = first + 32 * i + threadIdx.x % 32;
      of[i] = index < end ? expert_of(p, ids[i]) : kNoId;
    }
  }
};

struct IdRange {
  uint32_t begin, end;
};
__device__ IdRange of_warps(const RouteParams& p, uint32_t first, uint32_t warps) {
  const uint32_t begin = (blockIdx.x * p.warps + first) * p.ids_a_warp;
  return {min(begin, p.count), min(begin + warps * p.ids_a_warp, p.count)};
}

// counts[warps]: of the CTAs before this one; counts[warps + 1]: of those behind it.
__device__ void count_others(const RouteParams& p, uint32_t* counts) {
  const IdRange own = of_warps(p, 0, p.warps);
  const uint32_t stride = p.experts + 1;
#pragma unroll 1
  for (uint32_t first = threadIdx.x / 32 * 32 * kIdsAtOnce; first < p.count;
       first += kRouteThreads * kIdsAtOnce) {
    if (first >= own.begin && first + 32 * kIdsAtOnce <= own.end) continue;
    const SomeExperts experts(p, first, p.count);
#pragma unroll
    for (int i = 0; i < kIdsAtOnce; ++i) {
      const uint32_t index = first + 32 * i + threadIdx.x % 32;
      if (experts.of[i] == kNoId || (index >= own.begin && index < own.end)) continue;
      const uint32_t side = p.warps + (index < own.begin ? 0 : 1);
      atomicAdd(&counts[side * stride + experts.of[i]], 1u);
    }
  }
}

// counts[warp][expert], of those warps that count; the last expert: none. Then count_others'.
__device__ void count_ids(const RouteParams& p, uint32_t* counts) {
  const uint32_t stride = p.experts + 1, warp = threadIdx.x / 32;
  for (uint32_t i = threadIdx.x; i < p.counters * stride; i += kRouteThreads) counts[i] = 0;
  group_tiles::sync_cta();
  if (warp < p.warps) {
    const IdRange own = of_warps(p, warp, 1);
#pragma unroll 1
    for (uint32_t first = own.begin; first < own.end; first += 32 * kIdsAtOnce) {
      const SomeExperts experts(p, first, own.end);
#pragma unroll
      for (const uint32_t expert : experts.of) {
        if (expert != kNoId) atomicAdd(&counts[warp * stride + expert], 1u);
      }
    }
  }
  if (p.counters > p.warps) count_others(p, counts);
  group_tiles::sync_cta();
}

// counts becomes where each warp's next row of each expert goes; the first CTA writes the offsets.
__device__ void place_experts(const RouteParams& p, uint32_t* counts) {
  __shared__ uint32_t sums[2][1][32];  // of chunks in turn
  const uint32_t stride = p.experts + 1;
  uint32_t before = 0;  // rows of the chunks before
#pragma unroll 1
  for (uint32_t first = 0, chunk = 0; first < stride; first += kRouteThreads, chunk ^= 1) {
    const uint32_t expert = first + threadIdx.x;
    const bool exists = expert < stride;
    uint32_t own = 0;
    for (uint32_t part = 0; exists && part < p.counters; ++part)
      own += counts[part * stride + expert];
    __syncwarp();
    uint32_t through[1] = {own}, all[1];
    group_tiles::scan<kRouteThreads, group_tiles::Add>(sums[chunk], through, all);
    uint32_t next = before + through[0] - own;
    if (exists && blockIdx.x == 0) p.offsets[expert] = static_cast<int32_t>(next);
    if (exists && p.counters > p.warps) next += counts[p.warps * stride + expert];
    for (uint32_t warp = 0; exists && warp < p.warps; ++warp) {
      const uint32_t count = counts[warp * stride + expert];
      counts[warp * stride + expert] = next;
      next += count;
    }
    before += all[0];
  }
  group_tiles::sync_cta();
}

__device__ void write_row(const RouteParams& p, uint32_t index, uint32_t row, bool exists) {
  const uint32_t token = quotient(index, p.top_k);
  p.row_tokens[row] = static_cast<int32_t>(token);
  p.places[index] = exists ? static_cast<int32_t>(row) : -1;
  if (p.row_scale == nullptr) return;
  float scale = exists ? 1.0f : 0.0f;
  if (exists && p.weights != nullptr) scale = load_weight(p.weight_type, p.weights, index);
  if (exists && p.token_scale != nullptr) scale = __fmul_rn(scale, p.token_scale[token]);
  p.row_scale[row] = scale;
}

// The lanes whose number is this lane's, below 2^bits or kNoId. A vote for each bit: match.any goes
// through the numbers one by one; 32768 ids of 128 experts took one CTA 52 us with it (H100), and
// 60 with votes (H200).
__device__ uint32_t lanes_alike(uint32_t number, uint32_t bits) {
  uint32_t alike = __ballot_sync(kWholeWarp, number != kNoId);
  if (number == kNoId) alike = ~alike;
#pragma unroll 1
  for (uint32_t bit = 0; bit < bits; ++bit) {
    const bool own = (number >> bit & 1) != 0;
    const uint32_t set = __ballot_sync(kWholeWarp, own);
    alike &= own ? set : ~set;
  }
  return alike;
}

__device__ void place_ids(const RouteParams& p, uint32_t* counts) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= p.warps) return;
  uint32_t* const next = counts + warp * (p.experts + 1);
  const IdRange own = of_warps(p, warp, 1);
#pragma unroll 1
  for (uint32_t first = own.begin; first < own.end; first += 32 * kIdsAtOnce) {
    const SomeExperts experts(p, first, own.end);
#pragma unroll
    for (int i = 0; i < kIdsAtOnce; ++i) {
      if (first + 32 * i >= own.end) break;  // the whole warp
      const uint32_t expert = experts.of[i];
      const bool there = expert != kNoId;
      __syncwarp();
      const uint32_t alike = lanes_alike(expert, p.expert_bits);
      const uint32_t before = __popc(alike & ((1u << lane) - 1));
      const uint32_t row = there ? next[expert] + before : 0;
      __syncwarp();  // all have read it
      if (there && before == 0) next[expert] += __popc(alike);
      __syncwarp();
      if (there) write_row(p, first + 32 * i + lane, row, expert < p.experts);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kRouteThreads)
    dual_gemm_route(const __grid_constant__ RouteParams p) {
  extern __shared__ uint32_t counts[];
#if __CUDA_ARCH__ >= 900
  ptx::griddepcontrol_wait();  // ids are the work of the grid in front
  ptx::griddepcontrol_launch_dependents();
#endif
  count_ids(p, counts);
  place_experts(p, counts);
  place_ids(p, counts);
}

Kernel route_kernel() {
  return {"route", "dual_gemm_route", reinterpret_cast<const void*>(&dual_gemm_route)};
}

}  // namespace dualgemm::cuda
