// Status, Expected, and the names of every enumerator in both directions.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/enum_table.hpp"
#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::test {
namespace {

// What callers have compiled in: numbers and names of a release never change. New rows of the table
// come after these.
template <class Enum>
void expect_kept(const std::vector<const char*>& names) {
  ASSERT_GE(core::kEnumCount<Enum>, static_cast<int32_t>(names.size()));
  for (size_t i = 0; i < names.size(); ++i) EXPECT_STREQ(name_of(static_cast<Enum>(i)), names[i]);
}

TEST(Names, NumbersAndNamesAreKept) {
  expect_kept<DataType>({"e2m1", "f16", "bf16", "f32"});
  expect_kept<ScaleLayout>({"linear", "swizzled_128x4"});
  expect_kept<ActivationKind>({"silu", "clamped_swiglu", "swiglu_oai", "gelu_erf", "gelu_tanh",
                               "relu2", "sigmoid", "identity"});
  expect_kept<Grouping>({"none", "contiguous", "masked"});
  expect_kept<StrategyId>({"auto", "reference", "two_pass", "cached", "graph", "streams",
                           "fused_epilogue", "fused_sequential", "fused", "fp8", "cutlass"});
  expect_kept<DeviceKind>({"auto", "cpu", "cuda"});
  expect_kept<Isa>(
      {"auto", "scalar", "avx2", "avx512_vnni", "amx_bf16", "sm100a", "sm90a", "sm80"});
  expect_kept<Regime>({"gemv", "multi_row", "tile"});
  expect_kept<Preparation>({"none", "optional", "required"});
}

template <class Enum>
void expect_both_directions(Expected<Enum> (*parse)(const std::string&)) {
  std::set<std::string> names;
  for (const auto& row : core::kEnumRows<Enum>) {
    EXPECT_STREQ(name_of(row.value), row.name);
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands twice";
    EXPECT_STRNE(row.meaning, "") << row.name;
    const Expected<Enum> back = parse(row.name);
    ASSERT_TRUE(back.ok()) << row.name;
    EXPECT_EQ(*back, row.value);
  }
  EXPECT_STREQ(name_of(static_cast<Enum>(core::kEnumCount<Enum>)), "unknown");
  EXPECT_STREQ(name_of(static_cast<Enum>(-1)), "unknown");
  for (const std::string& wrong : {std::string("unknown"), std::string(), *names.begin() + " "}) {
    const Expected<Enum> value = parse(wrong);
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(value.status().observed(), "\"" + wrong + "\"");
    for (const std::string& name : names)
      EXPECT_NE(value.status().rule().find(name), std::string::npos) << name;
  }
}

TEST(Names, BothDirections) {
  expect_both_directions(parse_data_type);
  expect_both_directions(parse_scale_layout);
  expect_both_directions(parse_activation);
  expect_both_directions(parse_grouping);
  expect_both_directions(parse_bias);
  expect_both_directions(parse_strategy);
  expect_both_directions(parse_device);
  expect_both_directions(parse_isa);
}

TEST(StatusTest, CodesHaveDistinctNames) {
  std::set<std::string> names;
  for (const auto& row : core::kEnumRows<StatusCode>) names.insert(status_code_name(row.value));
  EXPECT_EQ(names.size(), core::kEnumRows<StatusCode>.size());
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_STREQ(status_code_name(StatusCode::kOk), "ok");
  EXPECT_STREQ(status_code_name(StatusCode::kCorruptFile), "corrupt_file");
  EXPECT_STREQ(status_code_name(static_cast<StatusCode>(10)), "unknown");
}

TEST(StatusTest, SaysArgumentObservedAndRule) {
  const Status status = Status::invalid("k", "4090", "must be a multiple of 16");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "k: 4090; must be a multiple of 16");
  EXPECT_EQ(Status::unsupported("isa", "avx2", "x").code(), StatusCode::kUnsupported);
  const Status ok;
  EXPECT_TRUE(ok.ok());
  EXPECT_EQ(ok.code(), StatusCode::kOk);
  EXPECT_EQ(ok.message(), "ok");
  EXPECT_EQ(ok.argument() + ok.observed() + ok.rule(), "");
}

TEST(ExpectedTest, HoldsAValueOrAStatus) {
  Expected<std::unique_ptr<int>> value(std::make_unique<int>(7));
  ASSERT_TRUE(value.ok());
  EXPECT_TRUE(value.status().ok());
  const std::unique_ptr<int> moved = *std::move(value);
  EXPECT_EQ(*moved, 7);
  const Expected<int> error(Status::invalid("n", "0", "must be positive"));
  EXPECT_FALSE(error);
  EXPECT_EQ(error.status().argument(), "n");
  const Expected<int> neither{
      Status()};  // a success without a value is a bug of the caller, and says so
  EXPECT_FALSE(neither.ok());
  EXPECT_EQ(neither.status().code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace dualgemm::test
