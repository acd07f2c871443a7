// Prepared weights of the GPU's strategies as bytes. Without a GPU: what plans say of them. On one:
// that every byte is written and none depends on what was there, that they can be moved and cut,
// that a view gives the bits of a handle, and that what does not fit is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/int_math.hpp"
#include "cuda/runtime/pointers.hpp"
#include "dualgemm/dualgemm.hpp"
#include "plan/prepared_bytes.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

constexpr StrategyId kPreparing[] = {StrategyId::kCached, StrategyId::kGraph, StrategyId::kStreams,
                                     StrategyId::kFp8, StrategyId::kFused};

Expected<PreparedDescriptor> descriptor_for(const Problem& problem, StrategyId id,
                                            int capability = 90) {
  const auto plan = plan::choose(problem, {.strategy = id, .prepared = true},
                                 made_up_gpu(capability), cuda::strategies(), "");
  if (!plan) return plan.status();
  auto descriptor = prepared_descriptor(*plan);
  if (descriptor) {
    EXPECT_EQ(descriptor->bytes, plan->prepared_bytes);
  }
  return descriptor;
}

TEST(PreparedBytesOfGpus, DescriptorsFollowFromThePlan) {
  Problem p{.m = 3, .n = 20, .k = 64, .l = 3};  // gemms: n is padded to 32
  const auto expect = [&](StrategyId id, PreparedFormat format, int64_t expert_bytes,
                          int32_t version = 1) {
    const auto found = descriptor_for(p, id);
    ASSERT_TRUE(found.ok()) << found.status().message();
    const PreparedDescriptor wanted{.format = format,
                                    .version = version,
                                    .n = 20,
                                    .k = 64,
                                    .l = 3,
                                    .expert_bytes = expert_bytes,
                                    .bytes = 3 * expert_bytes,
                                    .alignment = 256};
    EXPECT_EQ(*found, wanted) << name_of(found->format) << " " << found->expert_bytes;
  };
  const int64_t halves = 256 + 2 * 32 * 64 * 2, e4m3 = 256 + 2 * (32 * 64 + 256),
                units = core::round_up(256 + (4 * 16 + 2) * 576, 256);
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    p.a.type = type;
    const bool bf16 = type == DataType::kBF16;
    for (const StrategyId id : {StrategyId::kCached, StrategyId::kGraph, StrategyId::kStreams})
      expect(id, bf16 ? PreparedFormat::kGpuBF16 : PreparedFormat::kGpuF16, halves);
    expect(StrategyId::kFp8, PreparedFormat::kGpuE4M3, e4m3);
    expect(StrategyId::kFused, bf16 ? PreparedFormat::kSm90aBF16 : PreparedFormat::kSm90aF16, units,
           2);
  }
  p = {.m = 3, .n = 20, .k = 64};
  EXPECT_EQ(descriptor_for(p, StrategyId::kCached, 100)->format, PreparedFormat::kGpuNvfp4);
  const auto ampere = descriptor_for(p, StrategyId::kFused, 80);
  ASSERT_TRUE(ampere.ok()) << ampere.status().message();
  EXPECT_EQ(ampere->format, PreparedFormat::kSm90aF16);
  EXPECT_EQ(ampere->expert_bytes, units);
  const auto pair = descriptor_for(p, StrategyId::kFused, 100);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->format, PreparedFormat::kSm100a);
  EXPECT_EQ(pair->expert_bytes, 256 + 3 * (2048 + 256));  // 20 columns: three units
}

TEST(PreparedBytesOfGpus, AnotherFamilysAndTruncatedOnesAreRefusedByName) {
  const Problem p{.m = 300, .n = 20, .k = 64};
  const auto hopper = descriptor_for(p, StrategyId::kFused, 90),
             blackwell = descriptor_for(p, StrategyId::kFused, 100);
  ASSERT_TRUE(hopper.ok() && blackwell.ok());
  const auto refusal = [&](const PreparedDescriptor& made, int64_t bytes) {
    const PreparedView view{made, reinterpret_cast<const void*>(uintptr_t{4096}), bytes};
    return plan::check_view_fits(*blackwell, view).message();
  };
  EXPECT_EQ(refusal(*blackwell, blackwell->bytes), "ok");
  EXPECT_EQ(refusal(*hopper, hopper->bytes),
            "prepared: sm90a_f16 version 2, n 20, k 64, l 1; must be made for the plan's sm100a "
            "version 1, n 20, k 64, l 1");
  EXPECT_EQ(refusal(*blackwell, 7167), "prepared: 7167 bytes; must be at least 7168");
}

// A case on the GPU, and what was prepared of it.
class PreparedBytesOnGpu : public ::testing::TestWithParam<StrategyId> {
 protected:
  void SetUp() override {
    DUALGEMM_NEEDS_GPU();
    if (GetParam() == StrategyId::kFp8 && gpu_caps().compute_capability < 89)
      GTEST_SKIP() << "no FP8 here";
  }
  static Plan plan_of(const Problem& problem) {
    const auto plan = make_plan(problem, {.strategy = GetParam(), .prepared = true}, gpu_caps());
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan ? *plan : Plan();
  }
  static GuardedDevice prepared_of(const Plan& plan, const Buffers& buffers, int fill) {
    GuardedDevice memory(plan.prepared_bytes, 0);
    EXPECT_EQ(cudaMemset(memory.data(), fill, static_cast<size_t>(memory.size())), cudaSuccess);
    const Status status = prepare(plan, buffers, memory.data(), memory.size());
    EXPECT_TRUE(status.ok()) << status.message();
    return memory;
  }
  static PreparedView view_of(const Plan& plan, GuardedDevice& memory) {
    return {*prepared_descriptor(plan), memory.data(), memory.size()};
  }
  // d; untouched where the call fails with anything but `message`.
  static std::vector<uint8_t> run_with(const Plan& plan, OnGpu& on_gpu, const Buffers& weights,
                                       const std::string& message = "ok") {
    GuardedDevice workspace(plan.workspace_bytes, 0);
    Buffers buffers = without_weights(on_gpu.buffers());
    buffers.prepared = weights.prepared, buffers.prepared_view = weights.prepared_view;
    on_gpu.poison_d();
    const Status status = dualgemm::run(plan, buffers, workspace.data(), workspace.size());
    EXPECT_EQ(status.message(), message);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<uint8_t> d = on_gpu.d();
    if (message != "ok") {
      for (const std::vector<uint8_t>& bytes : {d, workspace.download()}) {
        EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == kPoison; }))
            << "something was written after: " << message;
      }
    }
    return d;
  }
  static std::vector<uint8_t> run_with(const Plan& plan, OnGpu& on_gpu, const PreparedView& view,
                                       const std::string& message = "ok") {
    Buffers weights;
    weights.prepared_view = &view;
    return run_with(plan, on_gpu, weights, message);
  }
};

TEST_P(PreparedBytesOnGpu, OneContentAndOneResultWhereverTheyLie) {
  Rng rng;
  for (const int64_t l : {1, 3}) {
    for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
      for (const int64_t m : {3, 40}) {
        Problem p{.m = m, .n = 43, .k = 272, .l = l};
        p.a.type = type;
        p.up.scale_layout = ScaleLayout::kSwizzled128x4;
        RandomCase data(p, rng, Values::kRandom);
        OnGpu on_gpu(data);
        const Plan plan = plan_of(p);
        SCOPED_TRACE(plan.config() + ", l " + std::to_string(l));
        GuardedDevice memory = prepared_of(plan, on_gpu.buffers(), 0xFF);
        const std::vector<uint8_t> content = memory.download();
        ASSERT_EQ(prepared_of(plan, on_gpu.buffers(), 0x5A).download(), content)
            << "unwritten bytes";
        const auto handle = prepare(plan, on_gpu.buffers());
        ASSERT_TRUE(handle.ok()) << handle.status().message();
        Buffers weights;
        weights.prepared = &*handle;
        const std::vector<uint8_t> expected = run_with(plan, on_gpu, weights);
        ASSERT_EQ(run_with(plan, on_gpu, view_of(plan, memory)), expected);

        auto opened = open_prepared(content.data(), plan.prepared_bytes);  // on the host
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        ASSERT_EQ(opened->descriptor, handle->view().descriptor);
        GuardedDevice elsewhere(plan.prepared_bytes, 0, content.data());
        memory = GuardedDevice();
        opened->memory = elsewhere.data();
        ASSERT_EQ(run_with(plan, on_gpu, *opened), expected);
        const auto borrowed = PreparedWeights::borrow(*opened);
        ASSERT_TRUE(borrowed.ok()) << borrowed.status().message();
        weights.prepared = &*borrowed;
        for (int call = 0; call < 3; ++call)  // graph: recorded, then replayed
          ASSERT_EQ(run_with(plan, on_gpu, weights), expected) << "call " << call;
        EXPECT_EQ(elsewhere.download(), content) << "run() has written to prepared weights";
      }
    }
  }
}

TEST_P(PreparedBytesOnGpu, ExpertsAreParts) {
  Rng rng;
  const Problem all{.m = 5, .n = 48, .k = 256, .l = 3, .d = {.type = DataType::kF32}};
  Problem one = all;
  one.l = 1;
  RandomCase data(all, rng, Values::kExact);
  OnGpu on_gpu(data);
  const Plan plan = plan_of(all), plan_of_one = plan_of(one);
  GuardedDevice memory = prepared_of(plan, on_gpu.buffers(), 0xFF);
  const PreparedView view = view_of(plan, memory);
  const std::vector<uint8_t> content = memory.download(), d = run_with(plan, on_gpu, view);
  for (int64_t e = 0; e < all.l; ++e) {
    RandomCase alone(one, rng, Values::kExact);
    const auto copy = [&](const Operand& from, Operand& to) {
      std::copy_n(from.data.begin() + e * to.data.size(), to.data.size(), to.data.begin());
      std::copy_n(from.scales.begin() + e * to.scales.size(), to.scales.size(), to.scales.begin());
    };
    copy(data.a, alone.a), copy(data.gate, alone.gate), copy(data.up, alone.up);
    OnGpu alone_on_gpu(alone);
    const std::vector<uint8_t> part =
        prepared_of(plan_of_one, alone_on_gpu.buffers(), 0x11).download();
    ASSERT_EQ(static_cast<int64_t>(part.size()), view.descriptor.expert_bytes);
    EXPECT_TRUE(
        std::equal(part.begin(), part.end(), content.begin() + view.descriptor.expert_offset(e)))
        << "expert " << e;
    const auto of_expert = prepared_experts(view, e);
    ASSERT_TRUE(of_expert.ok()) << of_expert.status().message();
    const std::vector<uint8_t> got = run_with(plan_of_one, alone_on_gpu, *of_expert);
    if (GetParam() == StrategyId::kFp8) continue;  // its sums are not exact
    EXPECT_TRUE(
        std::equal(got.begin(), got.end(), d.begin() + e * static_cast<std::ptrdiff_t>(got.size())))
        << "expert " << e;
  }
}

TEST_P(PreparedBytesOnGpu, WhatDoesNotFitIsRefused) {
  Rng rng;
  const Problem p{.m = 3, .n = 48, .k = 256};
  RandomCase data(p, rng, Values::kRandom);
  OnGpu on_gpu(data);
  const Plan plan = plan_of(p);
  GuardedDevice memory = prepared_of(plan, on_gpu.buffers(), 0xFF);
  const PreparedView good = view_of(plan, memory);
  const std::string format = name_of(good.descriptor.format);
  const std::string here = std::to_string(cuda::current_gpu());
  PreparedView view = good;
  const int32_t version = good.descriptor.version;
  const std::string its_version = " version " + std::to_string(version);
  view.descriptor.version = version + 1;
  run_with(plan, on_gpu, view,
           "prepared: " + format + " version " + std::to_string(version + 1) +
               "; this library knows" + its_version);
  view = good;
  view.descriptor.n = 32;
  run_with(plan, on_gpu, view,
           "prepared: " + format + its_version +
               ", n 32, k 256, l 1; must be made for the plan's " + format + its_version +
               ", n 48, k 256, l 1");
  view = good;
  view.descriptor.format = PreparedFormat::kCpuPanels, view.descriptor.version = 1;
  run_with(plan, on_gpu, view, "prepared: made on cpu; must be made on the plan's device, cuda");
  view = good;
  view.bytes -= 256;
  run_with(plan, on_gpu, view,
           "prepared: " + std::to_string(view.bytes) + " bytes; must be at least " +
               std::to_string(good.bytes));
  view = good;
  view.memory = memory.data() + 64;
  run_with(plan, on_gpu, view, "prepared: address % 256 = 64; must be aligned to 256 bytes");
  view.memory = nullptr;
  run_with(plan, on_gpu, view, "prepared: null; is required");
  std::vector<uint8_t> host(static_cast<size_t>(good.bytes) + 256);
  view.memory = host.data() + 256 - reinterpret_cast<uintptr_t>(host.data()) % 256;
  int reads_pageable = 0;
  ASSERT_EQ(
      cudaDeviceGetAttribute(&reads_pageable, cudaDevAttrPageableMemoryAccess, cuda::current_gpu()),
      cudaSuccess);
  if (reads_pageable == 0) {
    const std::string message =
        "prepared: pageable host memory; must be memory of the current GPU, GPU " + here;
    run_with(plan, on_gpu, view, message);
    EXPECT_EQ(prepare(plan, on_gpu.buffers(), const_cast<void*>(view.memory), good.bytes).message(),
              message);
  }
  const std::vector<uint8_t> before = memory.download();
  EXPECT_EQ(prepare(plan, on_gpu.buffers(), memory.data(), good.bytes - 1).message(),
            "prepared: " + std::to_string(good.bytes - 1) + " bytes; must be at least " +
                std::to_string(good.bytes));
  Buffers buffers = on_gpu.buffers();
  buffers.gate = memory.data() + 16;
  EXPECT_EQ(prepare(plan, buffers, memory.data(), good.bytes).message(),
            "prepared: overlaps gate; must not share bytes with any other operand");
  EXPECT_EQ(memory.download(), before);
  run_with(plan, on_gpu, good);
}

INSTANTIATE_TEST_SUITE_P(Strategies, PreparedBytesOnGpu, ::testing::ValuesIn(kPreparing),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace dualgemm::test
