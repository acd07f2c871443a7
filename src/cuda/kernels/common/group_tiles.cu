// One CTA, experts in chunks of its threads: where each one's rows and tiles begin is a prefix of
// what those before it have. The tiles of a chunk are then dealt out to all threads, as one expert
// may have nearly all of them. Where rows name their experts, rows in chunks of the threads.
#include "cuda/kernels/common/group_tiles_kernel.hpp"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda {
namespace {

constexpr int kThreads = kGroupTilesThreads;
constexpr int kWarps = kThreads / 32;
constexpr uint32_t kScaleRows = 128;  // of a swizzled tile

struct Add {
  __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
};
struct Max {
  __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a > b ? a : b; }
};

// Behind branches that separate lanes; the barrier takes whole warps.
__device__ void sync_cta() {
  __syncwarp();
  __syncthreads();
}

template <class Join>
__device__ uint64_t scan_warp(uint64_t value) {
#pragma unroll
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    const uint64_t before = __shfl_up_sync(0xFFFFFFFFu, value, distance);
    if (threadIdx.x % 32 >= distance) value = Join()(before, value);
  }
  return value;
}

// The values of the threads up to this one, joined. By all threads of the CTA, which synchronise
// before the next call.
template <class Join>
__device__ uint64_t scan_cta(uint64_t value) {
  __shared__ uint64_t of_warps[32];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = scan_warp<Join>(value);
  if (lane == 31) of_warps[warp] = value;
  sync_cta();
  if (warp == 0) {
    of_warps[lane] = scan_warp<Join>(lane < kWarps ? of_warps[lane] : 0);
  }
  __syncthreads();
  return warp > 0 ? Join()(of_warps[warp - 1], value) : value;
}

// Into 0 .. most.
__device__ uint32_t cut(int32_t number, uint32_t most) {
  return number < 0 ? 0u : min(static_cast<uint32_t>(number), most);
}

// Of the experts of a chunk: their rows, their first tile and their first row of swizzled scales.
struct Chunk {
  uint32_t begin[kThreads], end[kThreads], first_tile[kThreads], padded_begin[kThreads];
};

// The expert's rows; of contiguous ones, `before` is where those of the chunks before end.
__device__ void find_rows(const GroupTilesParams& p, uint32_t expert, uint32_t before,
                          Chunk& chunk) {
  const bool exists = expert < p.l;
  if (p.offsets == nullptr) {
    chunk.begin[threadIdx.x] = 0;
    chunk.end[threadIdx.x] = exists ? cut(p.rows[expert], p.m) : 0;
    return;
  }
  const uint64_t own = exists ? cut(p.offsets[expert + 1], p.m) : 0;
  chunk.end[threadIdx.x] = max(static_cast<uint32_t>(scan_cta<Max>(own)), before);
  __syncthreads();
  chunk.begin[threadIdx.x] = threadIdx.x == 0 ? before : chunk.end[threadIdx.x - 1];
}

// Tiles in the low half, rows of swizzled scales in the high half: of the chunk's experts up to
// this thread's and of the chunks before, which have `before`.
__device__ uint64_t count_tiles(const GroupTilesParams& p, uint64_t before, Chunk& chunk) {
  const uint32_t rows = chunk.end[threadIdx.x] - chunk.begin[threadIdx.x];
  const uint32_t tiles = quotient(rows + p.tile_m.value - 1, p.tile_m);
  const uint32_t padded =
      p.offsets == nullptr ? 0 : (rows + kScaleRows - 1) / kScaleRows * kScaleRows;
  const uint64_t own = uint64_t{padded} << 32 | tiles;
  const uint64_t through = before + scan_cta<Add>(own);
  chunk.first_tile[threadIdx.x] = static_cast<uint32_t>(through - own);
  chunk.padded_begin[threadIdx.x] = static_cast<uint32_t>((through - own) >> 32);
  return through;
}

// The last expert of the chunk whose first tile is not behind `tile`: those without rows share
// theirs with the next one.
__device__ uint32_t owner_of(const Chunk& chunk, uint32_t tile) {
  uint32_t at = 0;
#pragma unroll
  for (uint32_t step = kThreads / 2; step > 0; step /= 2) {
    if (chunk.first_tile[at + step] <= tile) at += step;
  }
  return at;
}

// The number of tiles.
__device__ uint32_t table_of_experts(const GroupTilesParams& p) {
  __shared__ Chunk chunk;
  __shared__ uint64_t all_before;
  uint32_t rows_before = p.offsets == nullptr ? 0 : cut(p.offsets[0], p.m);
  uint64_t before = 0;
#pragma unroll 1
  for (uint32_t first = 0; first < p.l; first += kThreads) {
    find_rows(p, first + threadIdx.x, rows_before, chunk);
    const uint64_t through = count_tiles(p, before, chunk);
    if (threadIdx.x == kThreads - 1) all_before = through;
    sync_cta();
    const auto tiles_end = static_cast<uint32_t>(all_before);
#pragma unroll 1
    for (uint32_t tile = static_cast<uint32_t>(before) + threadIdx.x; tile < tiles_end;
         tile += kThreads) {
      const uint32_t owner = owner_of(chunk, tile);
      const uint32_t offset = (tile - chunk.first_tile[owner]) * p.tile_m.value;
      const uint32_t begin = chunk.begin[owner] + offset;
      const uint32_t end = min(begin + p.tile_m.value, chunk.end[owner]);
      p.table[1 + tile] = {first + owner, end == chunk.end[owner], begin, end,
                           p.offsets == nullptr ? begin : chunk.padded_begin[owner] + offset};
    }
    before = all_before;
    rows_before = chunk.end[kThreads - 1];
    sync_cta();  // the chunk has been read
  }
  return static_cast<uint32_t>(before);
}

constexpr uint32_t kNobody = ~0u;

// Whose row it is.
__device__ uint32_t owner_of_row(const GroupTilesParams& p, uint32_t row) {
  if (row >= p.m) return kNobody;
  const auto expert = static_cast<uint32_t>(p.row_experts[row]);
  return expert < p.l ? expert : kNobody;
}

// The same where rows name their experts. A run of rows of one expert is cut into tiles; the thread
// of a tile's first row writes all but its end, that of its last row the end.
__device__ uint32_t table_of_rows(const GroupTilesParams& p) {
  __shared__ uint32_t run_before, tiles_before;
  uint32_t run = 0, before = 0;  // where the run begins that the chunk before ends in; its tiles
#pragma unroll 1
  for (uint32_t first = 0; first < p.m; first += kThreads) {
    const uint32_t row = first + threadIdx.x, expert = owner_of_row(p, row);
    const bool begins = row == 0 || owner_of_row(p, row - 1) != expert;
    const uint32_t own_run =
        max(static_cast<uint32_t>(scan_cta<Max>(begins ? row : 0)), begins ? row : run);
    const uint32_t in_run = row - own_run;
    const uint32_t in_tile = in_run - quotient(in_run, p.tile_m) * p.tile_m.value;
    const bool exists = expert != kNobody, opens = exists && in_tile == 0;
    const uint32_t through = before + static_cast<uint32_t>(scan_cta<Add>(opens ? 1 : 0));
    if (opens) {
      GroupTile& tile = p.table[through];
      tile.expert = expert, tile.last = 0;
      tile.begin = tile.padded_begin = row;
    }
    const bool closes =
        exists && (in_tile + 1 == p.tile_m.value || owner_of_row(p, row + 1) != expert);
    if (closes) p.table[through].end = row + 1;
    if (threadIdx.x == kThreads - 1) run_before = own_run, tiles_before = through;
    sync_cta();
    run = run_before, before = tiles_before;  // written again behind the next scans' barriers
  }
  if (threadIdx.x == 0 && before > 0) p.table[before].last = 1;
  return before;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_group_tiles(const __grid_constant__ GroupTilesParams p) {
#if __CUDA_ARCH__ >= 900
  ptx::griddepcontrol_wait();  // offsets may be the work of the grid in front, and the table in use
  ptx::griddepcontrol_launch_dependents();
#endif
  const uint32_t tiles = p.row_experts == nullptr ? table_of_experts(p) : table_of_rows(p);
  if (threadIdx.x == 0) p.table[0] = {tiles, 0, 0, 0, 0};
}

Kernel group_tiles_kernel() {
  return {"group_tiles", "dual_gemm_group_tiles",
          reinterpret_cast<const void*>(&dual_gemm_group_tiles)};
}

}  // namespace dualgemm::cuda
