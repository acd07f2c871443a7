// What CUDA's own headers make: the barrier of a cooperative grid, tiles of several warps, and a
// pipeline of libcu++.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cuda/pipeline>
#include <vector>

#include "program.hpp"

namespace {

namespace cg = cooperative_groups;

__global__ void rotate(int* values, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  const unsigned mine = blockIdx.x * blockDim.x + threadIdx.x, count = gridDim.x * blockDim.x;
  for (int round = 0; round < rounds; ++round) {
    const int value = values[(mine + 1) % count];
    grid.sync();
    values[mine] = value;
    grid.sync();
  }
}

constexpr int kThreads = 64, kTiles = 5;

// The last thread that leaves the pipeline ends its mbarriers.
__global__ void sum_tiles(const int* in, int* out) {
  __shared__ alignas(16) int tiles[2][kThreads];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const cg::thread_block block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int tile = 0, next = 0; tile < kTiles; ++tile) {
    for (; next < kTiles && next < tile + 2; ++next) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, tiles[next % 2], in + next * kThreads,
                         cuda::aligned_size_t<16>(sizeof tiles[0]), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += tiles[tile % 2][kThreads - 1 - threadIdx.x];
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}

// Two warps a tile, which meet in the shared memory that CUDA reserves.
__global__ void sum_of_tile(int* values) {
  __shared__ cg::block_tile_memory<128> memory;
  const cg::thread_block block = cg::this_thread_block(memory);
  const auto tile = cg::tiled_partition<64>(block);
  const int sum = cg::reduce(tile, values[block.thread_rank()], cg::plus<int>());
  tile.sync();
  values[block.thread_rank()] = sum;
}

int* made(int count) {
  std::vector<int> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = i;
  int* made = nullptr;
  CHECK_CUDA(cudaMalloc(&made, values.size() * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(made, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice));
  return made;
}

std::vector<int> taken(int* values, int count) {
  std::vector<int> result(static_cast<size_t>(count));
  CHECK_CUDA(
      cudaMemcpy(result.data(), values, result.size() * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaFree(values));
  return result;
}

}  // namespace

void grid_sync() {
  constexpr int kBlocks = 6, kCount = kBlocks * kThreads;
  int *values = made(kCount), rounds = 3;
  void* arguments[] = {&values, &rounds};
  for (int i = 0; i < 2; ++i)
    CHECK_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(rotate), kBlocks, kThreads,
                                           arguments, 0, nullptr));
  const std::vector<int> result = taken(values, kCount);
  for (int i = 0; i < kCount; ++i) CHECK(result[static_cast<size_t>(i)] == (i + 6) % kCount);
}

void wide_tiles() {
  int* values = made(128);
  sum_of_tile<<<1, 128>>>(values);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<int> result = taken(values, 128);
  for (int i = 0; i < 128; ++i) CHECK(result[static_cast<size_t>(i)] == (i < 64 ? 2016 : 6112));
}

void pipeline() {
  int *in = made(kTiles * kThreads), *out = made(kThreads);
  sum_tiles<<<1, kThreads>>>(in, out);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<int> result = taken(out, kThreads);
  for (int i = 0; i < kThreads; ++i)
    CHECK(result[static_cast<size_t>(i)] == 640 + kTiles * (kThreads - 1 - i));
  CHECK_CUDA(cudaFree(in));
}
