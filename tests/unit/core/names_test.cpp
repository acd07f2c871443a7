// Status, Expected, and the names of every enumerator in both directions.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::test {
namespace {

template <class Enum, class Parse>
void expect_names(const std::vector<const char*>& names, const Parse& parse) {
  for (size_t i = 0; i < names.size(); ++i) {
    const auto value =
        static_cast<Enum>(i);  // the enumerators count from 0: the C interface relies on it
    EXPECT_STREQ(name_of(value), names[i]);
    const Expected<Enum> back = parse(names[i]);
    ASSERT_TRUE(back.ok()) << names[i];
    EXPECT_EQ(*back, value);
  }
  EXPECT_STREQ(name_of(static_cast<Enum>(names.size())), "unknown");
  EXPECT_STREQ(name_of(static_cast<Enum>(-1)), "unknown");
  for (const std::string& wrong :
       {std::string("unknown"), std::string(), std::string(names[0]) + " "}) {
    const Expected<Enum> value = parse(wrong);
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(value.status().observed(), "\"" + wrong + "\"");
    for (const char* name : names)
      EXPECT_NE(value.status().rule().find(name), std::string::npos) << name;
  }
}

TEST(Names, BothDirections) {
  expect_names<DataType>({"e2m1", "f16", "bf16", "f32"}, parse_data_type);
  expect_names<ScaleLayout>({"linear", "swizzled_128x4"}, parse_scale_layout);
  expect_names<ActivationKind>({"silu", "clamped_swiglu", "swiglu_oai", "gelu_erf", "gelu_tanh",
                                "relu2", "sigmoid", "identity"},
                               parse_activation);
  expect_names<Grouping>({"none", "contiguous", "masked"}, parse_grouping);
  expect_names<StrategyId>({"auto", "reference", "two_pass", "cached", "graph", "streams",
                            "fused_epilogue", "fused_sequential", "fused", "fp8"},
                           parse_strategy);
  expect_names<DeviceKind>({"auto", "cpu", "cuda"}, parse_device);
  expect_names<Isa>(
      {"auto", "scalar", "avx2", "avx512_vnni", "amx_bf16", "sm100a", "sm90a", "sm80"}, parse_isa);
  const char* regimes[] = {"gemv", "multi_row", "tile", "unknown"};
  for (int i = 0; i < 4; ++i) EXPECT_STREQ(name_of(static_cast<Regime>(i)), regimes[i]);
}

TEST(StatusTest, CodesHaveDistinctNames) {
  std::set<std::string> names;
  for (int code = 0; code <= 9; ++code)
    names.insert(status_code_name(static_cast<StatusCode>(code)));
  EXPECT_EQ(names.size(), 10u);
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
