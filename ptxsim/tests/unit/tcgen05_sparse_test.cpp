// tcgen05.mma.sp and .ws: what they compute, where their metadata lies, what they refuse.
#include "tcgen05_mma_case.hpp"

namespace {

using namespace tcgen05_test;

class Tcgen05Sparse : public Mma {};
TEST_P(Tcgen05Sparse, IsTheDenseProduct) { check(); }

INSTANTIATE_TEST_SUITE_P(
    Kinds, Tcgen05Sparse,
    testing::Values(
        Case{.name = "f16", .kind = kF16, .sparse = true},
        Case{.name = "bf16_selector", .kind = kBf16, .sparse = true, .selector = 1},
        Case{.name = "tf32", .kind = kTf32, .sparse = true},
        Case{.name = "tf32_selector", .kind = kTf32, .n = 24, .sparse = true, .selector = 1},
        Case{.name = "e4m3", .kind = kE4m3, .sparse = true},
        Case{.name = "e3m2", .kind = kE3m2, .n = 256, .sparse = true},
        Case{.name = "e2m1", .kind = kE2m1, .sparse = true},
        Case{.name = "e4m3_d_f16", .kind = kE4m3, .f16_d = true, .sparse = true},
        Case{.name = "f16_no_input", .kind = kF16, .accumulate = false, .sparse = true},
        Case{.name = "f16_scale_input", .kind = kF16, .input_shift = 2, .sparse = true},
        Case{.name = "f16_negate", .kind = kF16, .negate_a = true, .sparse = true},
        Case{.name = "mx_e4m3", .kind = kMxE4m3, .sf_id = 2, .sparse = true},
        Case{.name = "mx_e2m1", .kind = kMxE2m1, .sparse = true},
        Case{.name = "mxf4", .kind = kMxf4, .sf_id = 2, .sparse = true},
        Case{.name = "nvf4", .kind = kNvf4, .ue4m3 = true, .sparse = true},
        Case{
            .name = "nvf4_block16", .kind = kNvf4Block16, .n = 200, .ue4m3 = true, .sparse = true}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Layouts, Tcgen05Sparse,
    testing::Values(
        Case{.name = "f16_none", .kind = kF16, .swizzle = 0, .sparse = true},
        Case{.name = "f16_64", .kind = kF16, .swizzle = 4, .sparse = true},
        Case{.name = "f16_step", .kind = kF16, .k_offset_bytes = 64, .sparse = true},
        Case{.name = "nvf4_none", .kind = kNvf4, .swizzle = 0, .ue4m3 = true, .sparse = true},
        Case{
            .name = "f16_mn", .kind = kF16, .a_mn_major = true, .b_mn_major = true, .sparse = true},
        Case{.name = "e4m3_mn_none",
             .kind = kE4m3,
             .n = 128,
             .swizzle = 0,
             .a_mn_major = true,
             .b_mn_major = true,
             .sparse = true},
        Case{.name = "f16_a_tmem", .kind = kF16, .a_in_tmem = true, .sparse = true},
        Case{
            .name = "nvf4_a_tmem", .kind = kNvf4, .a_in_tmem = true, .ue4m3 = true, .sparse = true},
        Case{.name = "pair_f16", .kind = kF16, .m = 256, .n = 128, .ctas = 2, .sparse = true},
        Case{.name = "pair_tf32_a_tmem",
             .kind = kTf32,
             .m = 256,
             .n = 32,
             .ctas = 2,
             .a_in_tmem = true,
             .sparse = true,
             .selector = 1},
        Case{.name = "pair_mx", .kind = kMxE4m3, .m = 256, .n = 64, .ctas = 2, .sparse = true},
        Case{.name = "pair_nvf4",
             .kind = kNvf4,
             .m = 256,
             .n = 256,
             .ctas = 2,
             .ue4m3 = true,
             .sparse = true}),
    name_of);

class Tcgen05WeightStationary : public Mma {};
TEST_P(Tcgen05WeightStationary, WritesDAndNothingElse) { check(); }

INSTANTIATE_TEST_SUITE_P(
    Shapes, Tcgen05WeightStationary,
    testing::Values(
        Case{.name = "m32", .kind = kF16, .m = 32, .ws = true},
        Case{.name = "m32_n256", .kind = kE4m3, .m = 32, .n = 256, .ws = true},
        Case{.name = "m64", .kind = kTf32, .m = 64, .ws = true},
        Case{.name = "m64_n128_mn",
             .kind = kBf16,
             .m = 64,
             .n = 128,
             .a_mn_major = true,
             .b_mn_major = true,
             .ws = true},
        Case{.name = "m128", .kind = kE2m3, .n = 128, .ws = true},
        Case{.name = "m128_d_f16", .kind = kF16, .f16_d = true, .accumulate = false, .ws = true},
        Case{.name = "m32_a_tmem", .kind = kF16, .m = 32, .a_in_tmem = true, .ws = true},
        Case{.name = "m64_a_tmem", .kind = kE3m2, .m = 64, .a_in_tmem = true, .ws = true},
        Case{.name = "m32_four_a",
             .kind = kTf32,
             .m = 32,
             .a_in_tmem = true,
             .ws = true,
             .own_a = true},
        Case{.name = "m64_two_a",
             .kind = kF16,
             .m = 64,
             .n = 128,
             .a_in_tmem = true,
             .ws = true,
             .own_a = true},
        Case{
            .name = "m32_sparse", .kind = kF16, .m = 32, .sparse = true, .selector = 1, .ws = true},
        Case{.name = "m32_sparse_e4m3",
             .kind = kE4m3,
             .m = 32,
             .n = 128,
             .sparse = true,
             .ws = true},
        Case{.name = "m64_sparse", .kind = kTf32, .m = 64, .n = 128, .sparse = true, .ws = true},
        Case{.name = "m64_sparse_two_a",
             .kind = kF16,
             .m = 64,
             .a_in_tmem = true,
             .sparse = true,
             .ws = true,
             .own_a = true},
        Case{.name = "m128_sparse", .kind = kE5m2, .sparse = true, .ws = true}),
    name_of);

// One statement on zeros: A at 0, B at 16 KiB, D at column 0, metadata at column 256.
struct Statement {
  std::string modifiers, tail = ", 0";
  uint32_t instruction = kF16Sparse;
  uint32_t metadata = 256;
  uint64_t b = descriptor(0x4000, 0, 1024, 2);
  bool sparse = true;

  static constexpr uint32_t kF16Sparse = 4 | 1u << 4 | 8u << 17 | 8u << 24;  // M = 128, N = 64
  static constexpr uint32_t kF16Dense = kF16Sparse & ~4u;
  std::string text() const {
    return at("%x0", 0) + set32("%x1", instruction) + at("%x2", metadata) +
           set64("%d0", descriptor(0, 0, 1024, 2)) + set64("%d1", b) + "  tcgen05.mma" + modifiers +
           " [%x0], %d0, %d1, " + (sparse ? "[%x2], " : "") + "%x1" + tail + ";\n";
  }
};

Kernel kernel_of(const std::string& issue) {
  Kernel kernel;
  kernel.shared = {std::vector<uint8_t>(0x8000)};
  kernel.issue = issue;
  return kernel;
}

constexpr const char* kSp = ".sp.cta_group::1.kind::f16";
constexpr const char* kWs = ".ws.cta_group::1.kind::f16";

TEST(Tcgen05SparseRules, TheStatementIsClean) {
  run_clean(kernel_of(Statement{.modifiers = kSp}.text()));
  run_clean(kernel_of(
      Statement{.modifiers = kWs, .instruction = Statement::kF16Dense, .sparse = false}.text()));
}

TEST(Tcgen05SparseRules, InstructionDescriptor) {
  const auto error = [](const char* modifiers, uint32_t instruction, bool sparse,
                        const std::string& part) {
    expect_error(
        kernel_of(
            Statement{.modifiers = modifiers, .instruction = instruction, .sparse = sparse}.text()),
        part);
  };
  constexpr uint32_t kSparse = Statement::kF16Sparse, kDense = Statement::kF16Dense;
  error(kSp, kDense, true, "sparsity (bit 2) is 0; tcgen05.mma.sp needs 1");
  error(".cta_group::1.kind::f16", kSparse, false, "only tcgen05.mma.sp has a sparse A");
  error(kSp, kSparse | 2, true, "sparsity selector (bits 0-1) is 2; only 0 and 1 are modelled");
  error(".sp.cta_group::1.kind::f8f6f4", kSparse | 1, true, "sparsity selector (bits 0-1) is 1");
  error(kSp, kSparse - (4u << 24), true, "M is 64 with a sparse A; only 128 is modelled");
  error(kWs, kDense + (8u << 24), false, "M is 256; must be 32, 64 or 128 with .ws");
  error(kWs, kDense + (1u << 17), false, "N is 72; must be 64, 128 or 256 with .ws");
  error(".ws.sp.cta_group::1.kind::f16", kSparse + (24u << 17), true,
        "N is 256; must be 64 or 128 with .ws and a sparse A");
  error(".cta_group::1.kind::f16", kDense | 1u << 30, false, "maximum shift of .ws");
  error(".ws.cta_group::1.kind::mxf4.block_scale", kDense, false, "neither cta_group::2 nor block");
  Kernel pair =
      kernel_of(Statement{.modifiers = ".ws.cta_group::2.kind::f16", .sparse = false}.text());
  pair.ctas = 2;
  expect_error(pair, "neither cta_group::2 nor block scales");
}

TEST(Tcgen05SparseRules, PlaceOfMetadata) {
  expect_error(kernel_of(Statement{.modifiers = kSp, .metadata = 257}.text()),
               "metadata at lane 0, column 257; must start at lane 0 and an even column (R14)");
  expect_error(kernel_of(Statement{.modifiers = kSp, .metadata = 32u << 16 | 256}.text()),
               "metadata at lane 32, column 256");
  expect_error(kernel_of(Statement{.modifiers = kSp, .metadata = 62}.text()),
               "of D overlap columns 62 .. 62 of the sparsity metadata (R14)");
  Kernel small = kernel_of(Statement{.modifiers = kSp}.text());
  small.columns = 256;
  expect_error(small, "sparsity metadata of tcgen05.mma");
}

TEST(Tcgen05SparseRules, RowOfBMustLieInTheSwizzle) {
  expect_error(kernel_of(Statement{.modifiers = kSp, .b = descriptor(0x4000, 0, 256, 6)}.text()),
               "the 64 bytes of a step along K must lie in one row (R14)");
  expect_error(
      kernel_of(Statement{.modifiers = kSp, .b = descriptor(0x4000 + 96, 0, 1024, 2)}.text()),
      "the 64 bytes of a step along K must lie in one row (R14)");
}

TEST(Tcgen05SparseRules, UndefinedMetadata) {
  Kernel kernel = kernel_of(Statement{.modifiers = kSp}.text());
  kernel.shared[0].assign(0x8000, 0x3c);
  expect_error(kernel, "sparsity metadata of row 0 of A, columns 0 .. 3: 0b0000; PTX does not");
  for (const uint32_t four : {0b0100u, 0b0110u, 0b1000u, 0b1001u, 0b1100u, 0b1101u, 0b1110u}) {
    kernel.tensor[0].assign(size_t{kLanes} * kColumns, four * 0x11111111u);
    run_clean(kernel);
  }
  kernel.tensor[0].assign(size_t{kLanes} * kColumns, 0b0010u * 0x11111111u);
  expect_error(kernel, "0b0010; PTX does not define it");
}

TEST(Tcgen05SparseRules, ZeroColumnMask) {
  const auto text = [](const char* mask) {
    return Statement{.modifiers = kWs,
                     .tail = ", 0, " + std::string(mask),
                     .instruction = Statement::kF16Dense,
                     .sparse = false}
        .text();
  };
  run_clean(kernel_of(text("0")));
  run_clean(kernel_of(text("0x0001000100000000")));  // spans without the non-zero mask
  expect_error(kernel_of(text("0x0000008000000000")),
               "zero-column mask descriptor 0x0000008000000000: masks (bit 39) and column shifts");
  expect_error(kernel_of(text("0x0200000000000000")),
               "column shifts (bits 56-61) are not modelled");
}

// Messages of R15 for two statements with these modifiers, the second with another B if need be.
std::vector<std::string> reports_of(const std::string& first, const std::string& second,
                                    uint64_t second_b = Statement{}.b) {
  const auto text = [](const std::string& modifier, uint64_t b) {
    return Statement{
        .modifiers = kWs + modifier, .instruction = Statement::kF16Dense, .b = b, .sparse = false}
        .text();
  };
  const Result result = run(kernel_of(text(first, Statement{}.b) + text(second, second_b)));
  EXPECT_FALSE(result.run.error) << problems(result.run);
  std::vector<std::string> messages;
  for (const ptxsim::Report& report : result.run.reports.list) {
    EXPECT_EQ(report.rule, 15);
    messages.push_back(to_string(report));
  }
  return messages;
}

TEST(Tcgen05SparseRules, CollectorsOfB) {
  const auto one = [](const std::vector<std::string>& messages, const std::string& part) {
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_NE(messages[0].find(part), std::string::npos) << messages[0];
  };
  const std::string fill = ".collector::b1::fill", last = ".collector::b1::lastuse";
  EXPECT_TRUE(reports_of(fill, last).empty());
  EXPECT_TRUE(reports_of("", "").empty());
  one(reports_of(fill, last, descriptor(0x6000, 0, 1024, 2)),
      "collector::b1 use with matrix B 0x4000404000000640; the last fill");
  one(reports_of("", ".collector::b3::use"), "collector::b3 use without an earlier fill");
  one(reports_of(fill, ".collector::b1::discard"), "the collector::b1 fill of PTX line");
  one(reports_of(".collector::b2::fill", ""),
      "collector::b2::fill whose matrix B no later instruction uses");
}

}  // namespace
