#include <set>
#include <string>

#include <gtest/gtest.h>

#include "ptxsim/ir/types.hpp"

namespace ptxsim::test {
namespace {

constexpr int kNumTypes = static_cast<int>(Type::kPred) + 1;

TEST(Types, NamesAreUniqueAndFoundAgain) {
  std::set<std::string> names;
  for (int i = 1; i < kNumTypes; ++i) {
    const auto type = static_cast<Type>(i);
    EXPECT_EQ(type_from_name(name_of(type)), type) << name_of(type);
    EXPECT_TRUE(names.emplace(name_of(type)).second) << name_of(type);
  }
  EXPECT_EQ(type_from_name(""), Type::kNone);
  EXPECT_EQ(type_from_name("f33"), Type::kNone);
  EXPECT_EQ(type_from_name("B32"), Type::kNone);
  EXPECT_EQ(type_from_name(".b32"), Type::kNone);
}

TEST(Types, Bytes) {
  EXPECT_EQ(bytes_of(Type::kPred), 0u);
  EXPECT_EQ(bytes_of(Type::kNone), 0u);
  for (const Type type :
       {Type::kB8, Type::kU8, Type::kS8, Type::kE2m1x2, Type::kE4m3, Type::kE2m1}) {
    EXPECT_EQ(bytes_of(type), 1u) << name_of(type);
  }
  for (const Type type :
       {Type::kB16, Type::kF16, Type::kBf16, Type::kE4m3x2, Type::kUe8m0x2, Type::kE2m1x4}) {
    EXPECT_EQ(bytes_of(type), 2u) << name_of(type);
  }
  for (const Type type : {Type::kB32, Type::kF16x2, Type::kBf16x2, Type::kF32, Type::kTf32,
                          Type::kE4m3x4, Type::kU16x2}) {
    EXPECT_EQ(bytes_of(type), 4u) << name_of(type);
  }
  for (const Type type : {Type::kB64, Type::kF64, Type::kF32x2, Type::kS64}) {
    EXPECT_EQ(bytes_of(type), 8u) << name_of(type);
  }
  EXPECT_EQ(bytes_of(Type::kB128), 16u);
}

TEST(Types, Classes) {
  std::set<std::string> is_signed_names, float_names;
  for (int i = 1; i < kNumTypes; ++i) {
    const auto type = static_cast<Type>(i);
    EXPECT_FALSE(is_signed(type) && is_float(type)) << name_of(type);
    if (is_signed(type)) is_signed_names.emplace(name_of(type));
    if (is_float(type)) float_names.emplace(name_of(type));
  }
  EXPECT_EQ(is_signed_names, (std::set<std::string>{"s8", "s16", "s32", "s64", "s16x2"}));
  EXPECT_TRUE(float_names.contains("bf16x2"));
  EXPECT_TRUE(float_names.contains("ue8m0"));
  EXPECT_FALSE(float_names.contains("b32"));
  EXPECT_FALSE(float_names.contains("u16x2"));
}

}  // namespace
}  // namespace ptxsim::test
