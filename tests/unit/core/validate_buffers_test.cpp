// validate(problem, buffers): one broken rule at a time.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/validate.hpp"
#include "dualgemm/dualgemm.hpp"
#include "support/checked.hpp"
#include "support/inputs.hpp"

namespace dualgemm {
namespace {

using test::RandomCase;
using test::Rng;
using test::Values;

struct BufferRule {
  std::string argument, observed;
  std::function<void(Buffers&)> breaks;
  StatusCode code = StatusCode::kInvalidArgument;
};

void expect_refused(const Problem& problem, const std::vector<BufferRule>& rules,
                    std::vector<int32_t> experts = {}) {
  Rng rng;
  RandomCase data(problem, rng, Values::kRandom, std::move(experts));
  for (const BufferRule& rule : rules) {
    Buffers buffers = data.buffers();
    ASSERT_TRUE(validate(problem, buffers).ok()) << validate(problem, buffers).message();
    rule.breaks(buffers);
    const Status status = validate(problem, buffers);
    EXPECT_EQ(status.argument(), rule.argument) << status.message();
    EXPECT_EQ(status.observed(), rule.observed) << status.message();
    EXPECT_EQ(status.code(), rule.code) << status.message();
  }
}

template <class T>
const T* moved(const T* pointer, int64_t bytes) {
  return reinterpret_cast<const T*>(reinterpret_cast<uintptr_t>(pointer) +
                                    static_cast<uintptr_t>(bytes));
}
void* moved(void* pointer, int64_t bytes) {
  return const_cast<void*>(moved(static_cast<const void*>(pointer), bytes));
}

Problem nvfp4_in_and_out() {
  Problem p{.m = 5, .n = 48, .k = 64, .l = 2};
  p.d.type = DataType::kE2M1;
  return p;
}

TEST(ValidateBuffers, ProblemComesFirst) {
  const Status status = validate(Problem{}, Buffers{});
  EXPECT_EQ(status.argument(), "m");
}

TEST(ValidateBuffers, Nulls) {
  expect_refused(nvfp4_in_and_out(),
                 {
                     {"a", "null", [](Buffers& b) { b.a = nullptr; }},
                     {"a_scales", "null", [](Buffers& b) { b.a_scales = nullptr; }},
                     {"gate", "null", [](Buffers& b) { b.gate = nullptr; }},
                     {"gate_scales", "null", [](Buffers& b) { b.gate_scales = nullptr; }},
                     {"up", "null", [](Buffers& b) { b.up = nullptr; }},
                     {"up_scales", "null", [](Buffers& b) { b.up_scales = nullptr; }},
                     {"d", "null", [](Buffers& b) { b.d = nullptr; }},
                     {"d_scales", "null", [](Buffers& b) { b.d_scales = nullptr; }},
                 });
}

TEST(ValidateBuffers, ScalesOfUnscaledTypes) {
  static uint8_t byte;
  Problem p = nvfp4_in_and_out();
  p.a.type = DataType::kF16;
  p.d.type = DataType::kF16;
  expect_refused(p, {
                        {"a_scales", "not null", [](Buffers& b) { b.a_scales = &byte; }},
                        {"d_scales", "not null", [](Buffers& b) { b.d_scales = &byte; }},
                    });
}

TEST(ValidateBuffers, BiasesComeTogetherAndOnlyWhereTheProblemHasThem) {
  static const float floats[100] = {};
  for (const BiasType type : {BiasType::kF32, BiasType::kBF16}) {
    Problem p = nvfp4_in_and_out();
    p.bias = type;
    const int64_t size = core::bytes_of(type);
    const std::string misaligned = "address % " + std::to_string(size) + " = 1";
    expect_refused(
        p, {{"bias_gate", "null", [](Buffers& b) { b.bias_gate = nullptr; }},
            {"bias_up", "null", [](Buffers& b) { b.bias_up = nullptr; }},
            {"bias_gate", misaligned, [](Buffers& b) { b.bias_gate = moved(b.bias_gate, 1); }},
            {"bias_up", misaligned, [](Buffers& b) { b.bias_up = moved(b.bias_up, 1); }}});
  }
  expect_refused(nvfp4_in_and_out(),
                 {{"bias_gate", "not null", [](Buffers& b) { b.bias_gate = floats; }},
                  {"bias_up", "not null", [](Buffers& b) { b.bias_up = floats; }}});
}

TEST(ValidateBuffers, PreparedWeightsReplaceTheRawOnes) {
  const Problem p = nvfp4_in_and_out();
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  static const uint8_t some_object = 0;  // only its address counts here
  Buffers buffers = test::without_weights(data.buffers());
  buffers.prepared = reinterpret_cast<const PreparedWeights*>(&some_object);
  EXPECT_TRUE(validate(p, buffers).ok()) << validate(p, buffers).message();
  buffers.gate = buffers.up = buffers.d;  // where weights were before they were freed
  EXPECT_TRUE(validate(p, buffers).ok()) << validate(p, buffers).message();
}

TEST(ValidateBuffers, Alignment) {
  Problem p = nvfp4_in_and_out();
  p.a.type = DataType::kF32;
  p.d.type = DataType::kF16;
  static const float floats[20] = {};
  const std::vector<BufferRule> rules = {
      {"a", "address % 4 = 2", [](Buffers& b) { b.a = moved(b.a, 2); }},
      {"d", "address % 2 = 1", [](Buffers& b) { b.d = moved(b.d, 1); }},
      {"a_row_scale", "address % 4 = 1", [](Buffers& b) { b.a_row_scale = moved(floats, 1); }},
      {"alpha_gate_per_batch", "address % 4 = 2",
       [](Buffers& b) { b.alpha_gate_per_batch = moved(floats, 2); }},
      {"alpha_up_per_batch", "address % 4 = 3",
       [](Buffers& b) { b.alpha_up_per_batch = moved(floats, 3); }},
  };
  expect_refused(p, rules);
  p.a.type = DataType::kBF16;
  p.d.type = DataType::kF32;
  expect_refused(p, {{"a", "address % 2 = 1", [](Buffers& b) { b.a = moved(b.a, 1); }},
                     {"d", "address % 4 = 2", [](Buffers& b) { b.d = moved(b.d, 2); }}});
}

TEST(ValidateBuffers, AddressesThatWrap) {
  const auto at_the_end = [](int64_t bytes) {
    return reinterpret_cast<uint8_t*>(-static_cast<uintptr_t>(bytes));
  };
  // A: 2 batches of 5 rows of 32 bytes.
  expect_refused(nvfp4_in_and_out(),
                 {{"a", "320 bytes from its address", [=](Buffers& b) { b.a = at_the_end(319); },
                   StatusCode::kOverflow},
                  {"up_scales", "384 bytes from its address",
                   [=](Buffers& b) { b.up_scales = at_the_end(1); }, StatusCode::kOverflow}});
}

TEST(ValidateBuffers, GlobalScaleOfD) {
  const auto set = [](float value) { return [=](Buffers& b) { b.d_global_scale = value; }; };
  expect_refused(nvfp4_in_and_out(),
                 {{"d_global_scale", "0", set(0.0f)},
                  {"d_global_scale", "-1", set(-1.0f)},
                  {"d_global_scale", "inf", set(std::numeric_limits<float>::infinity())},
                  {"d_global_scale", "nan", set(std::numeric_limits<float>::quiet_NaN())}});
}

// D (2 batches of 5 rows of 24 bytes) and d_scales (2 of 5 x 3) laid over the last or first byte of
// each input, then just beside it.
TEST(ValidateBuffers, Overlaps) {
  Problem p = nvfp4_in_and_out();
  p.grouping = Grouping::kMasked;
  p.bias = BiasType::kBF16;
  static uint8_t arena[1 << 14];
  alignas(4) static float floats[10] = {};
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {5, 3});
  const auto all = [&] {
    Buffers b = data.buffers();
    b.a_row_scale = floats;
    b.alpha_gate_per_batch = floats;
    b.alpha_up_per_batch = floats;
    return b;
  };
  struct Input {
    const char* name;
    int64_t bytes;
    std::function<void(Buffers&, const uint8_t*)> place;
  };
  const auto as_floats = [](const uint8_t* at) { return reinterpret_cast<const float*>(at); };
  const Input inputs[] = {
      {"a", 320, [](Buffers& b, const uint8_t* at) { b.a = at; }},
      {"a_scales", 40, [](Buffers& b, const uint8_t* at) { b.a_scales = at; }},
      {"a_row_scale", 40, [=](Buffers& b, const uint8_t* at) { b.a_row_scale = as_floats(at); }},
      {"gate", 3072, [](Buffers& b, const uint8_t* at) { b.gate = at; }},
      {"gate_scales", 384, [](Buffers& b, const uint8_t* at) { b.gate_scales = at; }},
      {"up", 3072, [](Buffers& b, const uint8_t* at) { b.up = at; }},
      {"up_scales", 384, [](Buffers& b, const uint8_t* at) { b.up_scales = at; }},
      {"alpha_gate_per_batch", 8,
       [=](Buffers& b, const uint8_t* at) { b.alpha_gate_per_batch = as_floats(at); }},
      {"alpha_up_per_batch", 8,
       [=](Buffers& b, const uint8_t* at) { b.alpha_up_per_batch = as_floats(at); }},
      {"bias_gate", 192, [](Buffers& b, const uint8_t* at) { b.bias_gate = at; }},
      {"bias_up", 192, [](Buffers& b, const uint8_t* at) { b.bias_up = at; }},
      {"expert_rows", 8,
       [](Buffers& b, const uint8_t* at) {
         b.expert_rows = reinterpret_cast<const int32_t*>(at);  // zeros: legal counts
       }},
  };
  uint8_t* const at = arena + 4096;
  for (const Input& input : inputs) {
    for (const bool scales : {false, true}) {
      const char* output = scales ? "d_scales" : "d";
      const int64_t output_bytes = scales ? 30 : 240;
      const auto status_with_output_at = [&](int64_t offset) {
        Buffers b = all();
        input.place(b, at);
        (scales ? b.d_scales : *reinterpret_cast<uint8_t**>(&b.d)) = at + offset;
        return validate(p, b);
      };
      for (const int64_t offset : {input.bytes - 1, 1 - output_bytes, int64_t{0}}) {
        const Status status = status_with_output_at(offset);
        EXPECT_EQ(status.argument(), output) << input.name << " offset " << offset;
        EXPECT_EQ(status.observed(), std::string("overlaps ") + input.name) << "offset " << offset;
      }
      EXPECT_TRUE(status_with_output_at(input.bytes).ok()) << input.name;
      EXPECT_TRUE(status_with_output_at(-output_bytes).ok()) << input.name;
    }
  }
  Buffers b = all();
  b.d_scales = static_cast<uint8_t*>(b.d) + 239;
  EXPECT_EQ(validate(p, b).message(),
            "d: overlaps d_scales; must not share bytes with any other operand");
}

TEST(ValidateBuffers, ContiguousOffsets) {
  Problem p{.m = 9, .n = 16, .k = 16, .l = 3, .grouping = Grouping::kContiguous};
  const auto set = [](const std::vector<int32_t>& offsets) {
    return [&offsets](Buffers& b) { b.expert_offsets = offsets.data(); };
  };
  const std::vector<int32_t> first{1, 4, 4, 9}, falls{0, 4, 3, 9}, last{0, 4, 4, 10},
      negative{0, -1, 4, 9}, beyond{0, 4, 10, 9};
  expect_refused(p,
                 {{"expert_offsets", "null", [](Buffers& b) { b.expert_offsets = nullptr; }},
                  {"expert_offsets", "address % 4 = 2",
                   [](Buffers& b) { b.expert_offsets = moved(b.expert_offsets, 2); }},
                  {"expert_offsets[0]", "1", set(first)},
                  {"expert_offsets[2]", "3", set(falls)},
                  {"expert_offsets[3]", "10", set(last)},
                  {"expert_offsets[1]", "-1", set(negative)},
                  {"expert_offsets[3]", "9", set(beyond)},
                  {"expert_rows", "not null", [&](Buffers& b) { b.expert_rows = first.data(); }}},
                 {0, 4, 4, 9});
  expect_refused(p, {}, {0, 4, 4, 8});  // the last row is of no expert
}

TEST(ValidateBuffers, RowsOfAByIndex) {
  Problem p{.m = 3, .n = 16, .k = 16, .l = 2, .grouping = Grouping::kContiguous, .a_rows = 5};
  static const int32_t below[] = {0, -1, 4}, above[] = {0, 1, 5}, right[] = {4, 4, 0};
  expect_refused(p, {{"a_row_index", "null", [](Buffers& b) { b.a_row_index = nullptr; }},
                     {"a_row_index", "address % 4 = 2",
                      [](Buffers& b) { b.a_row_index = moved(b.a_row_index, 2); }},
                     {"a_row_index[1]", "-1", [](Buffers& b) { b.a_row_index = below; }},
                     {"a_row_index[2]", "5", [](Buffers& b) { b.a_row_index = above; }}});
  p.a_rows = 0;
  expect_refused(p, {{"a_row_index", "not null", [](Buffers& b) { b.a_row_index = right; }}});
}

TEST(ValidateBuffers, RowsThatNameTheirExperts) {
  Problem p{.m = 3, .n = 16, .k = 16, .l = 3, .grouping = Grouping::kContiguous};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  static const int32_t experts[] = {INT32_MIN, 3, 1};
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {}, {experts, experts + 3});
  Buffers b = data.buffers();
  EXPECT_EQ(validate(p, b).message(), "ok") << "no number is wrong";
  b.expert_offsets = experts;
  EXPECT_EQ(validate(p, b).message(),
            "expert_offsets: not null; must be null where row_experts is given");
  b.expert_offsets = nullptr;
  b.row_experts = moved(b.row_experts, 2);
  EXPECT_EQ(validate(p, b).observed(), "address % 4 = 2");
  b.row_experts = static_cast<const int32_t*>(b.d) + 2;
  EXPECT_EQ(validate(p, b).message(),
            "d: overlaps row_experts; must not share bytes with any other operand");
  // One matrix of 3 rows takes 128 rows of scales, not 128 for each expert.
  static uint8_t arena[1024];
  b.row_experts = experts;
  b.a_scales = arena;
  b.d = arena + 512;
  EXPECT_EQ(validate(p, b).message(), "ok");
  b.d = arena + 510;
  EXPECT_EQ(validate(p, b).observed(), "overlaps a_scales");
  for (const Grouping grouping : {Grouping::kNone, Grouping::kMasked}) {
    p.grouping = grouping;
    b.row_experts = experts;
    EXPECT_EQ(validate(p, b).message(),
              "row_experts: not null; must be null unless grouping is contiguous");
  }
}

TEST(ValidateBuffers, AResidualIsDOrApart) {
  Problem p{.m = 3, .n = 16, .k = 16, .combine = Combine::kSideBySide, .up_column = 16};
  p.residual = true;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  Buffers b = data.buffers();
  EXPECT_EQ(validate(p, b).message(), "ok");
  b.residual = b.d;
  EXPECT_EQ(validate(p, b).message(), "ok");
  b.residual = static_cast<uint8_t*>(b.d) + 2;
  EXPECT_EQ(validate(p, b).message(),
            "d: overlaps residual; must not share bytes with any other operand");
  b.residual = static_cast<uint8_t*>(b.d) + 1;
  EXPECT_EQ(validate(p, b).observed(), "address % 2 = 1");
  b.residual = nullptr;
  EXPECT_EQ(validate(p, b).message(), "residual: null; is required");
  b.residual = b.a = b.d;  // that the residual may be D excuses nothing else
  EXPECT_EQ(validate(p, b).message(), "d: overlaps a; must not share bytes with any other operand");
  b = data.buffers();
  p.residual = false;
  EXPECT_EQ(validate(p, b).message(),
            "residual: not null; must be null: the problem has no residual");
}

TEST(ValidateBuffers, MaskedRows) {
  Problem p{.m = 9, .n = 16, .k = 16, .l = 3, .grouping = Grouping::kMasked};
  const std::vector<int32_t> negative{1, -1, 4}, beyond{1, 10, 4};
  expect_refused(
      p,
      {{"expert_rows", "null", [](Buffers& b) { b.expert_rows = nullptr; }},
       {"expert_rows[1]", "-1", [&](Buffers& b) { b.expert_rows = negative.data(); }},
       {"expert_rows[1]", "10", [&](Buffers& b) { b.expert_rows = beyond.data(); }},
       {"expert_offsets", "not null", [&](Buffers& b) { b.expert_offsets = beyond.data(); }}},
      {0, 9, 4});
}

TEST(ValidateBuffers, BatchesHaveNoExperts) {
  static const int32_t numbers[] = {0, 0, 0};
  expect_refused(nvfp4_in_and_out(),
                 {{"expert_offsets", "not null", [](Buffers& b) { b.expert_offsets = numbers; }},
                  {"expert_rows", "not null", [](Buffers& b) { b.expert_rows = numbers; }}});
}

// With 3 experts of 1 + 0 + 2 rows, swizzled scales take 256 rows, not 128: the span counts.
TEST(ValidateBuffers, SwizzledContiguousScalesSpanWholeTilesOfEveryExpert) {
  Problem p{.m = 3, .n = 16, .k = 16, .l = 3, .grouping = Grouping::kContiguous};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {0, 1, 1, 3});
  static uint8_t arena[2048];
  Buffers b = data.buffers();
  b.a_scales = arena;
  b.d = arena + 1024;
  EXPECT_TRUE(validate(p, b).ok()) << validate(p, b).message();
  b.d = arena + 1022;
  EXPECT_EQ(validate(p, b).observed(), "overlaps a_scales");
}

TEST(ValidateBuffers, NoTokensNeedNoTokenBuffers) {
  Problem p{.m = 0, .n = 16, .k = 16, .l = 2, .grouping = Grouping::kContiguous};
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {0, 0, 0});
  Buffers b = data.buffers();
  b.a = nullptr;
  b.a_scales = nullptr;
  b.d = nullptr;
  EXPECT_TRUE(validate(p, b).ok()) << validate(p, b).message();
}

// The bytes that run() uses of the workspace must belong to no operand; those beyond may.
TEST(ValidateBuffers, WorkspaceBelongsToNoOperand) {
  Rng rng;
  const Problem p = nvfp4_in_and_out();
  RandomCase data(p, rng, Values::kRandom);
  const Buffers b = data.buffers();
  constexpr int64_t kBytes = 4;
  const auto refusal = [&](const Buffers& buffers, const void* workspace, int64_t bytes) {
    return core::check_workspace_overlap(test::checked(p), buffers, core::GroupArrays::kHost,
                                         workspace, bytes)
        .message();
  };
  struct {
    const char* name;
    const void* data;
    int64_t bytes;
  } const operands[] = {
      {"a", b.a, data.a.data.size()},
      {"a_scales", b.a_scales, data.a.scales.size()},
      {"gate", b.gate, data.gate.data.size()},
      {"gate_scales", b.gate_scales, data.gate.scales.size()},
      {"up", b.up, data.up.data.size()},
      {"up_scales", b.up_scales, data.up.scales.size()},
      {"d", b.d, data.d.data.size()},
      {"d_scales", b.d_scales, data.d.scales.size()},
  };
  for (const auto& operand : operands) {
    const std::string expected = std::string("workspace: overlaps ") + operand.name +
                                 "; must not share bytes with any other operand";
    for (const int64_t offset : {-kBytes + 1, int64_t{0}, operand.bytes - 1}) {
      EXPECT_EQ(refusal(b, moved(operand.data, offset), kBytes), expected) << "offset " << offset;
    }
    for (const int64_t offset : {-kBytes, operand.bytes}) {
      EXPECT_EQ(refusal(b, moved(operand.data, offset), kBytes), "ok") << operand.name << offset;
    }
    EXPECT_EQ(refusal(b, operand.data, 0), "ok");
  }
  EXPECT_EQ(refusal(b, nullptr, 0), "ok");
  const int some_object = 0;  // only its address is looked at
  Buffers with_prepared = b;  // the caller's weights may have been freed, and be workspace now
  with_prepared.prepared = reinterpret_cast<const PreparedWeights*>(&some_object);
  EXPECT_EQ(refusal(with_prepared, b.gate, kBytes), "ok");
  EXPECT_NE(refusal(with_prepared, b.a, kBytes), "ok");
  const PreparedView view{{.bytes = kBytes}, b.gate, kBytes};  // bytes of the caller's are read
  with_prepared.prepared = nullptr;
  with_prepared.prepared_view = &view;
  EXPECT_EQ(refusal(with_prepared, b.gate, kBytes),
            "workspace: overlaps prepared; must not share bytes with any other operand");
  EXPECT_EQ(refusal(with_prepared, b.up, kBytes), "ok");
}

// They may change until the kernels read them, and the host cannot.
TEST(ValidateBuffers, OffsetsAndCountsOfADeviceAreNotRead) {
  Rng rng;
  const auto* const unreadable = reinterpret_cast<const int32_t*>(64);
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    Problem p{.m = 10, .n = 4, .k = 16, .l = 3, .grouping = grouping};
    p.a.scale_layout = ScaleLayout::kSwizzled128x4;
    RandomCase data(p, rng, Values::kRandom);
    Buffers b = data.buffers();
    (grouping == Grouping::kContiguous ? b.expert_offsets : b.expert_rows) = unreadable;
    const auto check = [&] {
      return core::check_buffers(test::checked(p), b, core::GroupArrays::kDevice);
    };
    EXPECT_EQ(check().message(), "ok");
    EXPECT_EQ(core::check_workspace_overlap(test::checked(p), b, core::GroupArrays::kDevice, b.d, 1)
                  .message(),
              "workspace: overlaps d; must not share bytes with any other operand");
    b.expert_offsets = b.expert_rows = nullptr;
    EXPECT_EQ(check().message(), grouping == Grouping::kContiguous
                                     ? "expert_offsets: null; is required"
                                     : "expert_rows: null; is required");
    b.expert_offsets = b.expert_rows = unreadable;
    EXPECT_EQ(check().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace dualgemm
