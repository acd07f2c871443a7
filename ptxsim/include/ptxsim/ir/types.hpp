// PTX fundamental types and state spaces (PTX ISA 9.0, "State Spaces, Types, and Variables").
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxsim {

enum class Type : uint8_t {
  kNone,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF32x2,
  kF64,
  kTf32,
  kE4m3x2,
  kE5m2x2,
  kE2m1x2,
  kE2m3x2,
  kE3m2x2,
  kUe8m0x2,
  kE4m3x4,
  kE5m2x4,
  kE2m1x4,
  kE2m3x4,
  kE3m2x4,
  kE4m3,
  kE5m2,
  kE2m1,
  kE2m3,
  kE3m2,
  kUe8m0,
  kUe4m3,
  kU16x2,
  kS16x2,
  kPred,
};

// Name as written after the dot ("f16x2"); kNone when it is no type.
Type type_from_name(std::string_view name);
std::string_view name_of(Type type);
unsigned bytes_of(
    Type type);  // of one value in a register of that type; kPred and kNone: 0; e2m1x2: 1
Type bits_type(uint64_t bytes);  // kB8 ... kB128; kNone: no type has so many
bool is_signed(Type type);
bool is_float(Type type);

enum class Space : uint8_t { kGeneric, kConst, kGlobal, kLocal, kParam, kShared };

}  // namespace ptxsim
