#include "ptxsim/ir/types.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace ptxsim {
namespace {

enum class Class : uint8_t { kOther, kSigned, kFloat };

struct TypeInfo {
  Type type;
  std::string_view name;
  uint8_t bytes;  // of the smallest register that holds a value
  Class type_class;
};

// In the order of the enumeration.
constexpr TypeInfo kTypes[] = {
    {Type::kNone, "", 0, Class::kOther},         {Type::kB8, "b8", 1, Class::kOther},
    {Type::kB16, "b16", 2, Class::kOther},       {Type::kB32, "b32", 4, Class::kOther},
    {Type::kB64, "b64", 8, Class::kOther},       {Type::kB128, "b128", 16, Class::kOther},
    {Type::kU8, "u8", 1, Class::kOther},         {Type::kU16, "u16", 2, Class::kOther},
    {Type::kU32, "u32", 4, Class::kOther},       {Type::kU64, "u64", 8, Class::kOther},
    {Type::kS8, "s8", 1, Class::kSigned},        {Type::kS16, "s16", 2, Class::kSigned},
    {Type::kS32, "s32", 4, Class::kSigned},      {Type::kS64, "s64", 8, Class::kSigned},
    {Type::kF16, "f16", 2, Class::kFloat},       {Type::kF16x2, "f16x2", 4, Class::kFloat},
    {Type::kBf16, "bf16", 2, Class::kFloat},     {Type::kBf16x2, "bf16x2", 4, Class::kFloat},
    {Type::kF32, "f32", 4, Class::kFloat},       {Type::kF32x2, "f32x2", 8, Class::kFloat},
    {Type::kF64, "f64", 8, Class::kFloat},       {Type::kTf32, "tf32", 4, Class::kFloat},
    {Type::kE4m3x2, "e4m3x2", 2, Class::kFloat}, {Type::kE5m2x2, "e5m2x2", 2, Class::kFloat},
    {Type::kE2m1x2, "e2m1x2", 1, Class::kFloat}, {Type::kE2m3x2, "e2m3x2", 2, Class::kFloat},
    {Type::kE3m2x2, "e3m2x2", 2, Class::kFloat}, {Type::kUe8m0x2, "ue8m0x2", 2, Class::kFloat},
    {Type::kE4m3x4, "e4m3x4", 4, Class::kFloat}, {Type::kE5m2x4, "e5m2x4", 4, Class::kFloat},
    {Type::kE2m1x4, "e2m1x4", 2, Class::kFloat}, {Type::kE2m3x4, "e2m3x4", 4, Class::kFloat},
    {Type::kE3m2x4, "e3m2x4", 4, Class::kFloat}, {Type::kE4m3, "e4m3", 1, Class::kFloat},
    {Type::kE5m2, "e5m2", 1, Class::kFloat},     {Type::kE2m1, "e2m1", 1, Class::kFloat},
    {Type::kE2m3, "e2m3", 1, Class::kFloat},     {Type::kE3m2, "e3m2", 1, Class::kFloat},
    {Type::kUe8m0, "ue8m0", 1, Class::kFloat},   {Type::kUe4m3, "ue4m3", 1, Class::kFloat},
    {Type::kU16x2, "u16x2", 4, Class::kOther},   {Type::kS16x2, "s16x2", 4, Class::kSigned},
    {Type::kPred, "pred", 0, Class::kOther},
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (static_cast<size_t>(kTypes[i].type) != i) return false;
  }
  return std::size(kTypes) == static_cast<size_t>(Type::kPred) + 1;
}
static_assert(in_order(), "kTypes is indexed with the enumeration's values");

const TypeInfo& info(Type type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

Type type_from_name(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [name](const TypeInfo& type) { return type.name == name; });
  return found == std::end(kTypes) ? Type::kNone : found->type;
}

std::string_view name_of(Type type) { return info(type).name; }
unsigned bytes_of(Type type) { return info(type).bytes; }
Type bits_type(uint64_t bytes) {
  switch (bytes) {
    case 1:
      return Type::kB8;
    case 2:
      return Type::kB16;
    case 4:
      return Type::kB32;
    case 8:
      return Type::kB64;
    case 16:
      return Type::kB128;
    default:
      return Type::kNone;
  }
}
bool is_signed(Type type) { return info(type).type_class == Class::kSigned; }
bool is_float(Type type) { return info(type).type_class == Class::kFloat; }

}  // namespace ptxsim
