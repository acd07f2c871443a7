// Where arrays, streams and prepared weights may belong. The judgement is a plain function and is
// tested with made-up answers of a driver; on a GPU the driver itself is asked.
#include "cuda/runtime/pointers.hpp"

#include <gtest/gtest.h>

#include <array>

#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

using cuda::MemoryPlace;

std::string verdict(const cuda::PointerInfo& info, bool reads_pageable = false) {
  const int anything = 0;
  return cuda::judge_pointer({"gate", &anything}, info,
                             {.number = 1, .reads_pageable = reads_pageable})
      .message();
}

TEST(Pointers, OnlyMemoryThatTheCurrentGpuReachesIsAccepted) {
  EXPECT_EQ(verdict({MemoryPlace::kGpu, 1, true}), "ok");
  EXPECT_EQ(verdict({MemoryPlace::kGpu, 0, false}),
            "gate: memory of GPU 0; must be memory of the current GPU, GPU 1");
  EXPECT_EQ(verdict({MemoryPlace::kGpu, 0, true}),  // peer access would let a kernel through
            "gate: memory of GPU 0; must be memory of the current GPU, GPU 1");
  EXPECT_EQ(verdict({MemoryPlace::kUnknown, 0, false}),
            "gate: pageable host memory; must be memory of the current GPU, GPU 1");
  EXPECT_EQ(verdict({MemoryPlace::kUnknown, 0, false}, true), "ok");
  EXPECT_EQ(verdict({MemoryPlace::kHost, 0, true}), "ok");  // slow, but right
  EXPECT_EQ(verdict({MemoryPlace::kHost, 1, false}),
            "gate: host memory that is not mapped; must be memory of the current GPU, GPU 1");
  EXPECT_EQ(verdict({MemoryPlace::kManaged, 0, true}), "ok");
  EXPECT_EQ(verdict({MemoryPlace::kManaged, 0, false}),
            "gate: managed memory out of reach; must be memory of the current GPU, GPU 1");
}

TEST(Pointers, StreamsAndWeightsBelongToTheCurrentGpu) {
  EXPECT_EQ(cuda::judge_stream(2, 2).message(), "ok");
  EXPECT_EQ(cuda::judge_stream(0, 2).message(),
            "stream: a stream of GPU 0; must be one of the current GPU, GPU 2");
  EXPECT_EQ(cuda::judge_prepared(2, 2).message(), "ok");
  EXPECT_EQ(cuda::judge_prepared(-1, 2).message(), "ok");
  EXPECT_EQ(cuda::judge_prepared(0, 2).message(),
            "prepared: made on GPU 0; must be made on the current GPU, GPU 2");
}

TEST(Pointers, NoPointersAndThePerThreadStreamAskNothing) {
  constexpr std::array<cuda::NamedPointer, 2> kNone{{{"a", nullptr}, {"d", nullptr}}};
  EXPECT_TRUE(cuda::check_pointers(kNone).ok());
  EXPECT_TRUE(cuda::check_stream(cudaStreamPerThread).ok());
}

std::string driver_says(const void* address) {
  const std::array<cuda::NamedPointer, 1> pointers{{{"a", address}}};
  return cuda::check_pointers(pointers).message();
}

TEST(PointersOnGpu, TheDriverKnowsEveryKindOfMemory) {
  DUALGEMM_NEEDS_GPU();
  void *device = nullptr, *managed = nullptr, *pinned = nullptr, *from_pool = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, 4096), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 4096), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(&from_pool, 4096, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (void* memory : {device, managed, pinned, from_pool}) {
    EXPECT_EQ(driver_says(memory), "ok");
    EXPECT_EQ(driver_says(static_cast<uint8_t*>(memory) + 4095), "ok");
  }
  std::vector<uint8_t> pageable(4096);
  int number = 0, reads_pageable = 0;
  ASSERT_EQ(cudaGetDevice(&number), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetAttribute(&reads_pageable, cudaDevAttrPageableMemoryAccess, number),
            cudaSuccess);
  EXPECT_EQ(driver_says(pageable.data()),
            reads_pageable != 0
                ? std::string("ok")
                : "a: pageable host memory; must be memory of the current GPU, GPU " +
                      std::to_string(number));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a question left an error behind";
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(from_pool, nullptr), cudaSuccess);
}

// In the mode that forbids the most. No question may break a recording.
TEST(PointersOnGpu, StreamsAreJudgedWhileOneRecords) {
  DUALGEMM_NEEDS_GPU();
  cudaStream_t recording = nullptr, blocking = nullptr, apart = nullptr;
  ASSERT_EQ(cudaStreamCreate(&recording), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking), cudaSuccess);
  const std::vector<cudaStream_t> all{recording, blocking,         apart,
                                      nullptr,   cudaStreamLegacy, cudaStreamPerThread};
  for (cudaStream_t stream : all) EXPECT_EQ(cuda::check_stream(stream).message(), "ok");

  ASSERT_EQ(cudaStreamBeginCapture(recording, cudaStreamCaptureModeGlobal), cudaSuccess);
  const std::string refusal =
      "stream: the legacy default stream; must be another one while a blocking stream records a "
      "graph";
  for (cudaStream_t stream : all) {
    const bool legacy = stream == nullptr || stream == cudaStreamLegacy;
    EXPECT_EQ(cuda::check_stream(stream).message(), legacy ? refusal : "ok");
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a question left an error behind";
  }
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(recording, &graph), cudaSuccess) << "a question broke the graph";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);

  // A stream that does not block leaves the legacy one alone.
  ASSERT_EQ(cudaStreamBeginCapture(apart, cudaStreamCaptureModeGlobal), cudaSuccess);
  for (cudaStream_t stream : all) EXPECT_EQ(cuda::check_stream(stream).message(), "ok");
  ASSERT_EQ(cudaStreamEndCapture(apart, &graph), cudaSuccess) << "a question broke the graph";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (cudaStream_t stream : {recording, blocking, apart})
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// With a second GPU at hand: memory and streams of it are refused by name.
TEST(PointersOnGpu, AnotherGpusMemoryAndStreamAreRefused) {
  DUALGEMM_NEEDS_GPU();
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  if (devices < 2) return;  // judged by made-up answers above
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(driver_says(memory), "a: memory of GPU 1; must be memory of the current GPU, GPU 0");
  EXPECT_EQ(cuda::check_stream(stream).message(),
            "stream: a stream of GPU 1; must be one of the current GPU, GPU 0");
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace
}  // namespace dualgemm::test
