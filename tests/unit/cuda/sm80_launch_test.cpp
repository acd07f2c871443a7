// What the host decides about the sm_80 kernel; needs no GPU. On one, every_kernel_test.cpp and
// fused_strategy_test.cpp run all instances.
#include <gtest/gtest.h>

#include <array>

#include "cuda/kernels/sm80/family.hpp"
#include "cuda/kernels/sm80/launch.hpp"
#include "cuda/kernels/sm80/shares.hpp"

namespace dualgemm::test {
namespace {

namespace sm80 = cuda::sm80;

DeviceCaps gpu(int compute_capability, int num_sms) {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.compute_capability = compute_capability;
  caps.num_sms = num_sms;
  return caps;
}

TEST(Sm80Choice, TilesFollowRowsColumnsAndTheGpu) {
  const DeviceCaps h100 = gpu(90, 132), rtx4090 = gpu(89, 128);
  const auto chosen = [](int64_t m, int64_t n, const DeviceCaps& caps, bool prepared = true,
                         DataType type = DataType::kBF16) {
    const Problem p{.m = m, .n = n, .k = 4096, .a = {.type = type}};
    const sm80::Config& c = sm80::choose_instance({p, sm80::Pass::kFused, prepared}, caps).config;
    EXPECT_EQ(c.prepared, prepared);
    return std::array{sm80::tile_m_of(c), sm80::tile_n_of(c), c.warps_k};
  };
  for (const bool prepared : {false, true}) {
    EXPECT_EQ(chosen(1, 4096, h100, prepared), (std::array{8, 32, 8}));
    EXPECT_EQ(chosen(9, 4096, h100, prepared), (std::array{16, 32, 8}));
    EXPECT_EQ(chosen(32, 4096, h100, prepared), (std::array{32, 32, 8}));
    const int cols = prepared ? 192 : 128;
    EXPECT_EQ(chosen(33, 4096, h100, prepared), (std::array{prepared ? 48 : 64, cols, 1}));
    EXPECT_EQ(chosen(49, 4096, h100, prepared), (std::array{64, cols, 1}));
    EXPECT_EQ(chosen(65, 4096, h100, prepared), (std::array{prepared ? 96 : 128, 128, 1}));
    EXPECT_EQ(chosen(97, 4096, h100, prepared), (std::array{128, 128, 1}));
    EXPECT_EQ(chosen(4096, 4096, h100, prepared), (std::array{128, 128, 1}));
  }
  EXPECT_EQ(chosen(16, 14336, h100), (std::array{16, 32, 8}));
  EXPECT_EQ(chosen(17, 14336, h100), (std::array{32, 32, 4})) << "448 tiles of 32 columns";
  EXPECT_EQ(chosen(32, 4096, rtx4090), (std::array{32, 32, 8}));
  EXPECT_EQ(chosen(33, 4096, rtx4090), (std::array{48, 192, 1}));
  EXPECT_EQ(chosen(65, 4096, rtx4090), (std::array{96, 128, 1}));
  EXPECT_EQ(chosen(33, 4096, h100, true, DataType::kE2M1), (std::array{48, 192, 1}));
  EXPECT_EQ(chosen(65, 4096, h100, true, DataType::kE2M1), (std::array{96, 128, 1}));
  EXPECT_EQ(chosen(65, 128, h100, false), (std::array{64, 128, 1})) << "two tiles on an idle GPU";
}

// Addresses of swizzled scales have 32 bits, a grid 31.
TEST(Sm80Choice, WhatNumbersCannotHoldIsRefused) {
  Problem p{.m = 1, .n = 1, .k = int64_t{1} << 29};
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;
  EXPECT_TRUE(sm80::supports(p).ok()) << sm80::supports(p).message();
  p.k += 64;
  EXPECT_EQ(sm80::supports(p).argument(), "gate_scales");
  p.gate.scale_layout = ScaleLayout::kLinear;
  EXPECT_TRUE(sm80::supports(p).ok());
  p.up.scale_layout = ScaleLayout::kSwizzled128x4;
  EXPECT_EQ(sm80::supports(p).argument(), "up_scales");
  p.up = {}, p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  EXPECT_EQ(sm80::supports(p).argument(), "a_scales");
  p.a = {.type = DataType::kF16};
  EXPECT_TRUE(sm80::supports(p).ok());

  p.n = 2, p.up.ld = (int64_t{1} << 33) - 2;
  EXPECT_TRUE(sm80::supports(p).ok());
  p.up.ld += 2;
  EXPECT_EQ(sm80::supports(p).argument(), "up") << "rows 2^32 bytes apart";
  p.n = 1;
  EXPECT_TRUE(sm80::supports(p).ok());

  p = {.m = 9, .n = 1, .k = 16, .l = int64_t{1} << 30};
  EXPECT_EQ(sm80::find_instance({p}, {8}), nullptr) << "2^31 tiles";
  EXPECT_NE(sm80::find_instance({p}, {16}), nullptr);
  p = {.m = 1, .n = 1, .k = 16, .l = int64_t{1} << 28};
  EXPECT_NE(sm80::find_instance({p}, {64, 0, 6}), nullptr);
  EXPECT_EQ(sm80::find_instance({p}, {64, 0, 8}), nullptr) << "2^31 parts of tiles";
}

TEST(Sm80Choice, CtasDivideKWhereTilesDoNotFillTheGpu) {
  const DeviceCaps h100 = gpu(90, 132);
  using Division = sm80::Division;
  const auto division = [&](Problem p) {
    return sm80::division_for(sm80::choose_instance({p}, h100).config, p, h100);
  };
  EXPECT_EQ(division({.m = 32, .n = 4096, .k = 7168}), Division{}) << "warps divide few rows";
  EXPECT_EQ(division({.m = 64, .n = 4096, .k = 7168}), Division{4}) << "32 tiles for 132 SMs";
  EXPECT_EQ(division({.m = 256, .n = 4096, .k = 7168}), Division{2}) << "64 tiles";
  EXPECT_EQ(division({.m = 2048, .n = 4096, .k = 7168}), (Division{1, 132})) << "3.9 waves";
  const Division shares{Division::kShares, 132};
  EXPECT_EQ(division({.m = 4096, .n = 14336, .k = 4096}), shares) << "27.2 waves";
  EXPECT_EQ(division({.m = 1024, .n = 3072, .k = 4096}), shares) << "192 tiles";
  EXPECT_EQ(division({.m = 64, .n = 128, .k = 64}), Division{}) << "one chunk of k";
  EXPECT_EQ(division({.m = 64, .n = 128, .k = 4096, .l = 4, .grouping = Grouping::kMasked}),
            Division{});
  EXPECT_EQ(division({.m = 64, .n = 4096, .k = 7168, .batch_invariant = true}), Division{4});
  EXPECT_EQ(division({.m = 1024, .n = 3072, .k = 4096, .batch_invariant = true}), Division{4});
  // A chunk at least has each part, and the sums of all are no more than 128 MiB.
  for (const int64_t k : {64, 128, 448, 4096, 65536}) {
    for (const int64_t n : {16, 128, 1024, 14336, 65536}) {
      for (const int64_t m : {33, 128, 1000, 8192}) {
        const Problem p{.m = m, .n = n, .k = k};
        const sm80::Instance& instance = sm80::choose_instance({p}, h100);
        const Division parts = division(p);
        EXPECT_LE(parts.splits, (k + 63) / 64);
        EXPECT_LE(sm80::workspace_bytes(p, instance, parts), 128 << 20);
        EXPECT_TRUE(parts.splits == Division::kShares
                        ? sm80::can_share(instance.config, p)
                        : sm80::divides_k_by(instance.config, p, parts.splits));
        EXPECT_LE(parts.ctas, 132);
      }
    }
  }
}

TEST(Sm80Choice, OneOrderOfSumsForAllRowsAndOneLoopForAllPasses) {
  for (const DeviceCaps& caps : {gpu(80, 108), gpu(89, 128), gpu(90, 132)}) {
    for (const int64_t m : {1, 8, 9, 17, 32, 33, 64, 65, 97, 4096}) {
      for (const int64_t n : {32, 4096, 14336}) {
        Problem p{.m = m, .n = n, .k = 4096, .batch_invariant = true};
        const sm80::Config& invariant = sm80::choose_instance({p}, caps).config;
        EXPECT_EQ(invariant.warps_k * sm80::division_for(invariant, p, caps).splits, 4);
        EXPECT_EQ(sm80::tile_m_of(invariant), m <= 32 || m * n > 4'000'000 ? 32
                                              : m <= 64 || m * n < 4096    ? 64
                                                                           : 128)
            << m << " " << n;
        p.batch_invariant = false;
        const int warps_k = sm80::choose_instance({p}, caps).config.warps_k;
        for (const auto pass : {sm80::Pass::kSequential, sm80::Pass::kGate, sm80::Pass::kUp})
          EXPECT_EQ(sm80::choose_instance({p, pass}, caps).config.warps_k, warps_k)
              << m << " " << n;
      }
    }
  }
}

// Every chunk of every tile has one owner, and the owners of a tile's chunks follow each other.
TEST(Sm80Choice, SharesAreEqualAndHaveEveryChunkOnce) {
  for (const uint32_t chunks : {1, 2, 7, 64, 1000, 4097}) {
    for (const uint32_t ctas : {1, 2, 7, 132, 1000}) {
      if (ctas > chunks) continue;
      const sm80::Shares shares{ctas, 0, chunks / ctas, chunks % ctas};
      EXPECT_EQ(shares.begin(0), 0u);
      EXPECT_EQ(shares.begin(ctas), chunks);
      for (uint32_t cta = 0; cta < ctas; ++cta) {
        const uint32_t begin = shares.begin(cta), end = shares.begin(cta + 1);
        EXPECT_TRUE(end - begin == chunks / ctas || end - begin == chunks / ctas + 1);
        EXPECT_EQ(shares.owner(begin), cta);
        EXPECT_EQ(shares.owner(end - 1), cta);
      }
    }
  }
  const Problem few{.m = 64, .n = 128, .k = 128};
  const sm80::Config& config = sm80::choose_instance({few}, gpu(90, 132)).config;
  constexpr int64_t kShares = sm80::Division::kShares;
  EXPECT_EQ(sm80::shares_of(config, few, 132), (sm80::Division{kShares, 2})) << "a chunk each";
  const sm80::Instance& instance = sm80::choose_instance({few}, gpu(90, 132));
  EXPECT_GT(sm80::workspace_bytes(few, instance, {kShares, 2}), 0);
  EXPECT_EQ(sm80::workspace_bytes(few, instance, {kShares, 1}), 0) << "whole tiles alone";
  EXPECT_EQ(sm80::turns_of(config, few, 132), (sm80::Division{1, 1})) << "a tile each";
  EXPECT_EQ(sm80::workspace_bytes(few, instance, {1, 1}), 0);
}

TEST(Sm80Choice, FewRowsTakeTurnsWhereAnSmHoldsThreeCtas) {
  const DeviceCaps h200 = gpu(90, 132), a100 = gpu(80, 108), rtx4090 = gpu(89, 128),
                   rtx5090 = gpu(120, 170), unknown = gpu(130, 170);
  const auto plan_of = [](int64_t m, bool prepared, const DeviceCaps& caps, int64_t ctas) {
    Plan plan;
    plan.problem = {.m = m, .n = 14336, .k = 4096, .a = {.type = DataType::kBF16}};
    plan.prepared = prepared;
    const sm80::Config& config =
        sm80::choose_instance({plan.problem, sm80::Pass::kFused, prepared}, caps).config;
    plan.shape = sm80::shape_of(config, sm80::division_for(config, plan.problem, caps));
    PlanConstraints constraints;
    constraints.ctas = ctas;
    EXPECT_TRUE(sm80::kFamily.deal_out(plan, caps, constraints).ok()) << m << ' ' << ctas;
    return plan.shape.ctas;
  };
  constexpr int64_t kAny = PlanConstraints::kAny;
  EXPECT_EQ(plan_of(1, true, h200, kAny), 3 * 132);
  EXPECT_EQ(plan_of(1, true, a100, kAny), 3 * 108);
  EXPECT_EQ(plan_of(1, false, h200, kAny), 0) << "registers for two CTAs";
  EXPECT_EQ(plan_of(16, true, h200, kAny), 0) << "likewise";
  EXPECT_EQ(plan_of(1, true, rtx4090, kAny), 0) << "100 KB of shared memory for two";
  EXPECT_EQ(plan_of(1, true, rtx5090, kAny), 0);
  EXPECT_EQ(plan_of(1, true, unknown, kAny), 0);
  EXPECT_EQ(plan_of(1, true, h200, PlanConstraints::kUnnamed), 0) << "a config without CTAs";
  EXPECT_EQ(plan_of(1, true, rtx4090, 2 * 128), 2 * 128);
  EXPECT_EQ(plan_of(1, false, h200, 2 * 132), 2 * 132);
  Plan plan;
  plan.problem = {.m = 1, .n = 14336, .k = 4096};
  const sm80::Config& config = sm80::choose_instance({plan.problem}, rtx4090).config;
  plan.shape = sm80::shape_of(config, {});
  PlanConstraints constraints;
  constraints.ctas = 3 * 128;
  EXPECT_EQ(sm80::kFamily.deal_out(plan, rtx4090, constraints).message(),
            "config: ctas=384; must be 1 .. 256, 2 for each SM of this GPU");
}

TEST(Sm80Choice, PredictionsBeginAtTheDataSheetsLimits) {
  const auto predicted = [](const Problem& problem, const DeviceCaps& caps) {
    Plan plan;
    plan.problem = problem;
    plan.shape = sm80::shape_of(sm80::choose_instance({problem}, caps).config, {});
    return *sm80::kFamily.predicted(plan, caps);
  };
  const DeviceCaps rtx4090 = gpu(89, 128);
  const Problem one{.m = 1, .n = 14336, .k = 4096, .a = {.type = DataType::kBF16}};
  const double read_us = 2.0 * 14336 * 4096 * 0.5625 / 1.008e6;  // at 1008 GB/s
  EXPECT_NEAR(predicted(one, rtx4090).low, read_us, 1e-3);
  EXPECT_GT(predicted(one, rtx4090).us, read_us);
  Problem many = one;
  many.m = 1024;
  EXPECT_GE(predicted(many, rtx4090).low, 0.9 * 2 * 14336.0 * 4096 * 1024 / 82.5e6);
  // The weights of experts without rows are not read.
  Problem experts{.m = 8, .n = 768, .k = 2048, .l = 8, .grouping = Grouping::kContiguous};
  const double of_eight = predicted(experts, rtx4090).us;
  experts.l = 128;
  EXPECT_EQ(predicted(experts, rtx4090).us, of_eight);
}

TEST(Sm80Choice, GridsThatAPlanCannotHaveAreRefused) {
  Plan plan;
  plan.problem = {.m = 100, .n = 4096, .k = 7168};  // 64 tiles of 64 x 128, 112 chunks each
  const auto takes = [&](int64_t k_parts, int64_t ctas) {
    plan.shape = {.tile_m = 64, .tile_n = 128, .tile_k = 64, .stages = 3};
    plan.shape.k_warpgroups = k_parts, plan.shape.ctas = ctas;
    return sm80::instance_of(plan, sm80::Pass::kFused).ok();
  };
  EXPECT_TRUE(takes(1, 0) && takes(1, 1) && takes(1, 64) && takes(0, 132) && takes(4, 0));
  EXPECT_FALSE(takes(1, 65)) << "more than tiles";
  EXPECT_FALSE(takes(4, 64)) << "each part has a CTA";
  EXPECT_FALSE(takes(1, -1) || takes(0, -1) || takes(0, 0) || takes(-1, 64) || takes(7, 0));
  EXPECT_FALSE(takes(INT64_MAX, 0) || takes(INT64_MAX, INT64_MAX));
  EXPECT_FALSE(takes(0, 64 * 112 + 1)) << "more than chunks";
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    plan.problem.grouping = grouping;
    EXPECT_TRUE(takes(1, 0));
    EXPECT_FALSE(takes(1, 1)) << "only a GPU knows the tiles of groups";
  }
  plan.problem.grouping = Grouping::kNone;
  plan.problem.batch_invariant = true;
  EXPECT_TRUE(takes(4, 0));
  EXPECT_FALSE(takes(1, 0) || takes(1, 5) || takes(0, 5));
}

TEST(Sm80Choice, Refusals) {
  const Problem halves{.m = 1, .n = 16, .k = 16, .a = {.type = DataType::kF16}};
  EXPECT_EQ(sm80::find_instance({halves}, {24}), nullptr);
  EXPECT_EQ(sm80::find_instance({halves}, {8, 24}), nullptr);
  EXPECT_EQ(sm80::find_instance({halves}, {8, 32, 4}), nullptr);
  EXPECT_NE(sm80::find_instance({halves}, {8, 32, 8}), nullptr);
  EXPECT_NE(sm80::find_instance({halves}, {128, 128, 16}), nullptr);
  EXPECT_EQ(sm80::find_instance({halves}, {128, 128, 7}), nullptr) << "no such number of CTAs";
  EXPECT_NE(sm80::find_instance({halves, sm80::Pass::kSequential}, {64, 256, 1}), nullptr);
  EXPECT_EQ(sm80::find_instance({halves, sm80::Pass::kSequential}, {64, 256, 2}), nullptr);
  EXPECT_EQ(sm80::find_instance({halves, sm80::Pass::kUp, true}, {16}), nullptr);
  EXPECT_EQ(sm80::supports({.m = 1, .n = 1, .k = 16}).message(), "ok");
  EXPECT_EQ(sm80::supports({.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kF32}}).message(),
            "a.type: f32; the kernels for a GPU take e2m1, f16 or bf16");
  EXPECT_EQ(sm80::supports({.m = 1, .n = 16, .k = 16, .d = {.type = DataType::kE2M1}}).message(),
            "ok");
  EXPECT_EQ(sm80::supports({.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked}).message(),
            "ok");
  EXPECT_EQ(sm80::supports(
                {.m = 1 << 20, .n = 1 << 12, .k = 16, .l = 1 << 8, .grouping = Grouping::kMasked})
                .message(),
            "m, n, l: 1048576, 4096, 256; experts must have at most 2^31 - 1 tiles of 8 x 32");
  EXPECT_EQ(sm80::supports({.m = 1 << 21, .n = 1 << 20, .k = 16}).message(),
            "m, n, l: 2097152, 1048576, 1; must be at most 2^31 - 1 tiles of 32 x 32");
  EXPECT_EQ(sm80::supports({.m = int64_t{1} << 31, .n = 1, .k = 16}).message(),
            "m: 2147483648; must be below 2^31 on a GPU");
  const Problem large{.m = 1 << 20, .n = 1 << 19, .k = 16};
  EXPECT_EQ(sm80::supports(large).message(), "ok");
  EXPECT_EQ(sm80::supports_r1(large).message(),
            "m, n, l: 1048576, 524288, 1; the Gate product in FP32 must be at most 2^40 bytes");
  EXPECT_EQ(sm80::r1_bytes({.m = 3, .n = 17, .k = 16, .l = 2}), 3 * 2 * 24 * 4);
}

}  // namespace
}  // namespace dualgemm::test
