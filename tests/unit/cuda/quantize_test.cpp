// quantize(), dequantize() and convert_scales() on a GPU through the library's interface, against
// the CPU: the same bits. (The interpreter runs the same kernels in tests/kernels/convert.)
#include <gtest/gtest.h>

#include "dualgemm/dualgemm.hpp"
#include "kernels/convert/quantize_checks.hpp"
#include "unit/cuda/gpu_arrays.hpp"

namespace dualgemm::test {
namespace {

using ::testing::AssertionResult;

class GpuDevice : public GpuArrays {
 public:
  AssertionResult quantize(const QuantizeProblem& problem, const QuantizeBuffers& buffers) {
    return done(dualgemm::quantize(problem, buffers, kOnGpu));
  }
  AssertionResult transform_rows(const TransformProblem& problem, const TransformBuffers& buffers) {
    return done(dualgemm::transform_rows(problem, buffers, kOnGpu));
  }
  AssertionResult dequantize(const QuantizeProblem& problem, const DequantizeBuffers& buffers) {
    return done(dualgemm::dequantize(problem, buffers, kOnGpu));
  }
  AssertionResult convert_scales(const ScaleConversion& conversion, const uint8_t* src,
                                 uint8_t* dst) {
    return done(dualgemm::convert_scales(conversion, src, dst, nullptr, kOnGpu));
  }
};

TEST(QuantizeOnGpu, SmallTensorsOfEveryKind) {
  DUALGEMM_NEEDS_GPU();
  for (int round = 0; round < 6; ++round) {
    GpuDevice device;
    check_random(device, 4);
  }
  GpuDevice device;
  check_conversions(device, 8);
  check_transforms(device, 8);
}

TEST(QuantizeOnGpu, TransformedRows) {
  DUALGEMM_NEEDS_GPU();
  GpuDevice device;
  check_transforms(device, 300);
}

// Rows as long as those of models, with every scale; one row is divided among CTAs.
TEST(QuantizeOnGpu, TransformedRowsOfModels) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const GlobalScaling scaling :
       {GlobalScaling::kGiven, GlobalScaling::kTensor, GlobalScaling::kRow}) {
    for (const int64_t rows : {1, 601}) {
      QuantizeProblem p{.rows = rows, .cols = 14336, .x = {.type = DataType::kBF16}};
      p.scaling = scaling;
      p.transform = {.factors = rng.chance(0.5), .hadamard = int64_t{16} << rng.integer(0, 4)};
      QuantizeCase data(p);
      data.randomize(rng, Hard::kOrdinary);
      GpuDevice device;
      expect_quantized_as_on_cpu(device, data, 0);
    }
  }
}

TEST(QuantizeOnGpu, EveryHalfPrecisionNumberInManyOrders) {
  DUALGEMM_NEEDS_GPU();
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (const bool four_over_six : {false, true}) {
      GpuDevice device;
      check_every_half(device, type, four_over_six, 64);
    }
  }
}

TEST(QuantizeOnGpu, MillionsOfTies) {
  DUALGEMM_NEEDS_GPU();
  for (const bool four_over_six : {false, true}) {
    GpuDevice device;
    check_ties(device, 1 << 18, four_over_six);
  }
}

TEST(QuantizeOnGpu, EveryCodeWithEveryScale) {
  DUALGEMM_NEEDS_GPU();
  for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
    GpuDevice device;
    check_every_code(device, type);
  }
}

TEST(QuantizeOnGpu, AnyShapeLayoutAndGroups) {
  DUALGEMM_NEEDS_GPU();
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    GpuDevice device;
    check_random(device, 20);
  }
}

// More than one pair of rows a thread; with a scale for each row a row in shared memory.
TEST(QuantizeOnGpu, LargeMatrix) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const GlobalScaling scaling : {GlobalScaling::kGiven, GlobalScaling::kRow}) {
    QuantizeProblem p{.rows = 4801, .cols = 7184, .x = {.type = DataType::kBF16}};
    p.scaling = scaling;
    p.q.scale_layout = ScaleLayout::kSwizzled128x4;
    QuantizeCase data(p);
    data.randomize(rng, Hard::kOrdinary);
    GpuDevice device;
    expect_quantized_as_on_cpu(device, data, 0);
  }
}

TEST(QuantizeOnGpu, MillionsOfValuesOfEachType) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
    for (const GlobalScaling scaling :
         {GlobalScaling::kGiven, GlobalScaling::kTensor, GlobalScaling::kRow}) {
      QuantizeProblem p{.rows = 601, .cols = 4112, .x = {.type = type}};
      p.scaling = scaling;
      p.four_over_six = rng.chance(0.5);
      p.q.scale_layout = rng.chance(0.5) ? ScaleLayout::kLinear : ScaleLayout::kSwizzled128x4;
      QuantizeCase data(p);
      data.randomize(rng, Hard::kOrdinary);
      GpuDevice device;
      expect_quantized_as_on_cpu(device, data, 0);
      expect_dequantized_as_on_cpu(device, data, 0);
    }
  }
}

TEST(QuantizeOnGpu, GarbageInDeviceMemory) {
  DUALGEMM_NEEDS_GPU();
  GpuDevice device;
  check_given_garbage(device);
  check_group_garbage(device, 60);
}

TEST(QuantizeOnGpu, ScalesFromAnyLayoutToAnyOther) {
  DUALGEMM_NEEDS_GPU();
  GpuDevice device;
  check_conversions(device, 100);
}

// Counts and scales are read when the graph runs, not when it is recorded.
TEST(QuantizeOnGpu, ARecordedCallReadsWhatTheMemoryHoldsNow) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const GlobalScaling scaling :
       {GlobalScaling::kGivenPerBatch, GlobalScaling::kTensor, GlobalScaling::kRow}) {
    QuantizeProblem p{.rows = 37, .cols = 208, .l = 5, .x = {.type = DataType::kBF16}};
    p.grouping = Grouping::kMasked;
    p.scaling = scaling;
    p.q.scale_layout = ScaleLayout::kSwizzled128x4;
    QuantizeCase data(p);
    data.randomize(rng, Hard::kOrdinary);
    GpuDevice device;
    const CaseOn<GpuDevice> there(device, data, 0);
    QuantizeBuffers buffers = there.buffers();
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    buffers.stream = stream;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    const Status status = quantize(p, buffers, kOnGpu);
    EXPECT_TRUE(status.ok()) << status.message();
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphExec_t recorded = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&recorded, graph, 0), cudaSuccess);
    for (int replay = 0; replay < 3; ++replay) {
      QuantizeCase fresh(p);
      fresh.randomize(rng, Hard::kOrdinary);
      const auto upload = [](const void* to, const void* from, size_t bytes) {
        ASSERT_EQ(cudaMemcpy(const_cast<void*>(to), from, bytes, cudaMemcpyHostToDevice),
                  cudaSuccess);
      };
      upload(buffers.x, fresh.x.data(), fresh.x.size());
      upload(buffers.codes, fresh.codes.data(), fresh.codes.size());
      upload(buffers.scales, fresh.scales.data(), fresh.scales.size());
      upload(buffers.groups.expert_rows, fresh.expert_rows.data(), fresh.expert_rows.size() * 4);
      if (buffers.global_scale != nullptr)
        upload(buffers.global_scale, fresh.global_scale.data(), fresh.global_scale.size() * 4);
      if (buffers.found_scale != nullptr)
        upload(buffers.found_scale, fresh.found_scale.data(), fresh.found_scale.size() * 4);
      ASSERT_EQ(cudaGraphLaunch(recorded, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      ASSERT_TRUE(core::quantize_on_cpu(fresh.resolved, fresh.buffers(), 1).ok());
      EXPECT_TRUE(same_case(there.now(), fresh)) << name_of(scaling) << ", replay " << replay;
    }
    EXPECT_EQ(cudaGraphExecDestroy(recorded), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
}

TEST(QuantizeOnGpu, RefusesMemoryOfTheHost) {
  DUALGEMM_NEEDS_GPU();
  QuantizeProblem p{.rows = 2, .cols = 32};
  p.scaling = GlobalScaling::kGiven;
  QuantizeCase data(p);
  GpuDevice device;
  const CaseOn<GpuDevice> there(device, data, 0);
  QuantizeBuffers buffers = there.buffers();
  const std::vector<uint16_t> pageable(64);
  buffers.x = pageable.data();
  int reads_pageable = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&reads_pageable, cudaDevAttrPageableMemoryAccess, 0),
            cudaSuccess);
  if (reads_pageable == 0) {
    EXPECT_EQ(quantize(p, buffers, kOnGpu).argument(), "x");
  }
  p.scaling = GlobalScaling::kTensor;
  buffers = there.buffers();
  buffers.found_scale = const_cast<float*>(std::exchange(buffers.global_scale, nullptr));
  buffers.workspace_bytes = 16;
  EXPECT_EQ(quantize(p, buffers, kOnGpu).code(), StatusCode::kWorkspaceTooSmall);
}

}  // namespace
}  // namespace dualgemm::test
