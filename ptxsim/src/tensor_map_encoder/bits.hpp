// Where a tensor map's fields lie in its 128 bytes. NVIDIA documents a CUtensorMap as opaque; the
// layout was found three times over, and the three agree wherever they meet:
//  - ptxas 13.0 assembles tensormap.replace to plain loads, masks and stores: every field that it
//    replaces, with its values (sm_90a and sm_103a, `cuobjdump -sass`);
//  - host code of CuTe DSL 4.8.1 writes tensor maps itself, into 64 bytes
//    (ptxsim/tests/tensor_maps: 64 random maps);
//  - what driver 580.65 encodes, as github.com/cicuvc/nvidia-sass-document records it
//    (notes/sm90/arch/cutensormap.md).
#pragma once

#include <cstdint>

#include "ptxsim/tensor_map.hpp"

namespace ptxsim {

struct TensorMapField {
  uint32_t word;   // of 32 bits
  uint32_t shift;  // of its lowest bit
  uint32_t bits;
  uint32_t mask() const { return static_cast<uint32_t>((uint64_t{1} << bits) - 1); }
};

namespace tensor_map_field {

inline constexpr TensorMapField kAddressLow{0, 0, 32}, kAddressHigh{1, 0, 32};
inline constexpr TensorMapField kIm2col{2, 0, 1};
// Bit 1 of this word: CuTe DSL sets it, the driver and tensormap.replace do not.
inline constexpr TensorMapField kLastDimension{2, 4, 3};  // rank - 1
inline constexpr TensorMapField kType{2, 7, 4};  // as tensormap.replace numbers them, less TF32
inline constexpr TensorMapField kInterleave{2, 11, 2};
inline constexpr TensorMapField kSwizzle{2, 13, 2};  // 0, 32, 64 or 128 bytes
inline constexpr TensorMapField kFill{2, 15, 1};
inline constexpr TensorMapField kTf32{2, 16, 1};  // with the types F32 and F32_FTZ
inline constexpr TensorMapField kL2Promotion{2, 17, 2};
inline constexpr TensorMapField kSwizzleAtomicity{2, 19, 2};  // 16B, 32B, 32B with 8B flip, 64B
// The tensor ends at 128 KiB or beyond: CUTLASS corrects it for drivers up to 13.1
// (copy_traits_sm90_tma.hpp).
inline constexpr TensorMapField kLarge{2, 21, 1};
inline constexpr TensorMapField kSwizzle96{2, 22, 1};
inline constexpr TensorMapField kFreeFlags{2, 23, 9};
inline constexpr TensorMapField kFreeStrides{7, 16, 16};
inline constexpr TensorMapField kFreeBox{13, 15, 9};
inline constexpr TensorMapField kPixels{15, 0, 10},
    kFreePixels{15, 10, 22};  // im2col: of a column, - 1
// What the driver writes for cuTensorMapEncodeIm2colWide is not published; here it is this word,
// otherwise free.
inline constexpr TensorMapField kWideMark{17, 0, 32};
inline constexpr uint32_t kWide = 0x65646977;
// Nothing needs these: CuTe DSL and tensormap.replace leave them as they are.
inline constexpr TensorMapField kBoxBytes{16, 0, 32}, kSwizzleHint{18, 0, 32};

// Bytes / 16 between elements of dimension i + 1.
constexpr TensorMapField stride_low(uint32_t i) { return {3 + i, 0, 32}; }
constexpr TensorMapField stride_high(uint32_t i) { return {7, 4 * i, 4}; }
constexpr TensorMapField last_index(uint32_t i) { return {8 + i, 0, 32}; }      // extent - 1
constexpr TensorMapField element_stride(uint32_t i) { return {13, 3 * i, 3}; }  // - 1
constexpr TensorMapField last_of_box(uint32_t i) {                              // box - 1
  return i == 0 ? TensorMapField{13, 24, 8} : TensorMapField{14, 8 * (i - 1), 8};
}
// im2col: corners of the pixel box, signed; `bits` of each of them.
constexpr TensorMapField lower_corner(uint32_t i, uint32_t bits) { return {14, bits * i, bits}; }
constexpr TensorMapField upper_corner(uint32_t i, uint32_t bits) {
  return {14, 16 + bits * i, bits};
}

}  // namespace tensor_map_field

inline uint32_t get(const TensorMapRecord& record, TensorMapField field) {
  return record.words[field.word] >> field.shift & field.mask();
}

// Bits of the value beyond the field are cut off.
inline void set(TensorMapRecord& record, TensorMapField field, uint64_t value) {
  uint32_t& word = record.words[field.word];
  const uint32_t bits = static_cast<uint32_t>(value) & field.mask();
  word = (word & ~(field.mask() << field.shift)) | bits << field.shift;
}

void set_address(TensorMapRecord& record, uint64_t address);
void set_stride(TensorMapRecord& record, uint32_t i, uint64_t bytes);

// The bytes of a map that was checked.
TensorMapRecord pack_tensor_map(const TensorMap& map);

}  // namespace ptxsim
