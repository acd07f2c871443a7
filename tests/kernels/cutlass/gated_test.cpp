// Gate and Up in one accumulator of CUTLASS's mainloop: against the oracle, in every schedule, in
// one CTA and in pairs.
#include <algorithm>
#include <vector>

#include "kernels/cutlass/simulated_gated.hpp"
#include "kernels/simulation/results.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/factors.hpp"

namespace dualgemm::test {
namespace {

using cuda::gated::Instance;
using reference::Accumulation;

void expect_right(const Problem& p, GatedRun run, Values values = Values::kRandom) {
  SCOPED_TRACE(::testing::Message() << run.instance.entry << " m " << p.m << " n " << p.n << " k "
                                    << p.k << " l " << p.l << ", d " << name_of(p.d.type) << ", "
                                    << name_of(p.act.kind) << ", misalign " << run.misalign);
  Rng rng;
  RandomCase data(p, rng, values);
  if (p.l > 1) add_alphas(data, rng);
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), Accumulation::kTensorCoreStep));
}

class Gated : public ::testing::TestWithParam<bool> {  // whether two CTAs share an MMA
 protected:
  static const Instance& instance() {
    return GetParam() ? cuda::gated::instance_2sm() : cuda::gated::instance_1sm();
  }
};

// Sums that are exact in any order through an identity epilogue: the oracle's bits. More than one
// tile each way, an odd number of 16-blocks, both biases, another alpha for each product.
TEST_P(Gated, ExactProductsAreTheOraclesBitForBit) {
  Problem p = swizzled({.m = 140, .n = 136, .k = 592, .l = 2, .d = {.type = DataType::kF32}});
  p.act.kind = ActivationKind::kIdentity;
  p.bias = GetParam() ? BiasType::kBF16 : BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kExact);
  GatedRun run{.instance = instance()};
  ASSERT_TRUE(simulate(data, run));
  EXPECT_EQ(run.copies, 3u) << "codes and scales of a, since k % 32 != 0, and the weights";
  const std::vector<uint8_t> bits = bits_of(data);
  data.poison_d();
  ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
  EXPECT_EQ(bits, bits_of(data));
}

// One cluster at a time does all tiles, an odd number of them: both accumulators, each more than
// once, and stages that begin elsewhere in every tile.
TEST_P(Gated, TheSameBitsInEverySchedule) {
  const int64_t m = GetParam() ? 150 : 100;
  Problem p = swizzled({.m = m, .n = 520, .k = 768, .d = {.type = DataType::kBF16}});
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  expect_same_gated_bits_in_schedules(data, instance());
}

TEST_P(Gated, RaggedShapesOutputsAndActivations) {
  expect_right(swizzled({.m = 1, .n = 1, .k = 16}), {.instance = instance()});
  expect_right({.m = 129, .n = 129, .k = 96}, {.instance = instance()});
  Problem gelu = {.m = 257, .n = 33, .k = 272, .d = {.type = DataType::kBF16}};
  gelu.act.kind = ActivationKind::kGeluErf;
  expect_right(gelu, {.instance = instance()}, Values::kWide);
  Problem oai = swizzled({.m = 60, .n = 200, .k = 64, .d = {.type = DataType::kF32}});
  oai.act.kind = ActivationKind::kSwigluOai;
  expect_right(oai, {.instance = instance()});
}

TEST_P(Gated, BatchesStridesAndMisalignment) {
  Problem p = swizzled({.m = 130, .n = 70, .k = 96, .l = 3});
  p.gate.ld = 128;
  p.up.ld = 104;
  p.up.scale_layout = ScaleLayout::kLinear;
  p.a.ld = 96 + 32;
  p.d.ld = 77;
  p.d.batch_stride = 77 * 131;
  for (const int64_t misalign : {0, 9}) {
    expect_right(p, {.instance = instance(), .misalign = misalign});
    expect_right(p, {.instance = instance(), .misalign = misalign, .prepared = true});
  }
}

INSTANTIATE_TEST_SUITE_P(All, Gated, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "TwoCtas" : "OneCta");
});

TEST(GatedPreparation, InterleavesRowsAndScalesOfBothWeights) {
  Problem p{.m = 1, .n = 130, .k = 80, .l = 2};
  p.up.scale_layout = ScaleLayout::kSwizzled128x4;
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  Simulation simulation(data, 3);
  const auto layout = cuda::gated::weight_layout(p.n, p.k);
  ASSERT_EQ(layout.rows(), 512);
  ASSERT_EQ(layout.row_bytes, 48);
  ASSERT_EQ(layout.scale_cols, 2);
  const int64_t expert_bytes = layout.bytes() + 512;
  auto* const memory = static_cast<uint8_t*>(simulation.scratch("out", expert_bytes * p.l));
  ASSERT_TRUE(simulation.run(
      cuda::gated::interleave_weights(data.resolved, simulation.buffers(), memory, expert_bytes),
      {}));
  const std::vector<uint8_t> out = simulation.download_scratch("out", 0xEE);
  for (int64_t l = 0; l < p.l; ++l) {
    for (int64_t row = 0; row < layout.rows(); ++row) {
      const bool is_gate = row % 256 < 128;
      const Operand& from = is_gate ? data.gate : data.up;
      const core::ResolvedMatrix& matrix = is_gate ? data.resolved.gate : data.resolved.up;
      const int64_t source_row = row / 256 * 128 + row % 128;
      for (int64_t byte = 0; byte < layout.row_bytes; ++byte) {
        const bool exists = source_row < p.n && byte < p.k / 2;
        const int64_t at = (l * matrix.batch_stride + source_row * matrix.ld) / 2 + byte;
        ASSERT_EQ(out[l * expert_bytes + row * layout.row_bytes + byte], exists ? from.data[at] : 0)
            << "expert " << l << " row " << row << " byte " << byte;
      }
      for (int64_t block = 0; block < 8; ++block) {
        const bool exists = source_row < p.n && block < p.k / 16;
        const int64_t tile = row / 128 * layout.scale_cols + block / 4;
        const int64_t at = l * expert_bytes + layout.code_bytes() + tile * 512 + row % 32 * 16 +
                           row % 128 / 32 * 4 + block % 4;
        const int64_t source =
            exists ? l * matrix.scale_batch_stride + matrix.scale_map()(source_row, block) : 0;
        ASSERT_EQ(out[at], exists ? from.scales[source] : 0)
            << "expert " << l << " row " << row << " block " << block;
      }
    }
    for (int64_t i = layout.bytes(); i < expert_bytes; ++i)
      ASSERT_EQ(out[l * expert_bytes + i], 0xEE) << "between experts";
  }
}

TEST(GatedPreparation, WhatItDoesNotTakeIsAStatusByName) {
  const auto refusal = [](const Problem& p) { return cuda::gated::supports(p).argument(); };
  const Problem taken{.m = 4, .n = 8, .k = 32};
  EXPECT_TRUE(cuda::gated::supports(taken).ok());
  Problem p = taken;
  p.grouping = Grouping::kMasked;
  EXPECT_EQ(refusal(p), "grouping");
  p = taken;
  p.a.type = DataType::kBF16;
  EXPECT_EQ(refusal(p), "a.type");
  p = taken;
  p.d.type = DataType::kE2M1;
  EXPECT_EQ(refusal(p), "d.type");
  p = taken;
  p.combine = Combine::kSideBySide;
  EXPECT_EQ(refusal(p), "combine");
  p = taken;
  p.n = 65536 * 128;
  EXPECT_EQ(refusal(p), "n, l");
}

}  // namespace
}  // namespace dualgemm::test
