// Operands of tcgen05.mma as a test makes them: values, and where their elements lie in shared
// memory. Written from CuTe's layouts, apart from the interpreter.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "number/formats.hpp"
#include "tcgen05_kernel.hpp"

namespace tcgen05_test {

inline unsigned span_of(unsigned swizzle) {
  return swizzle == 0 ? 16 : swizzle == 6 ? 32 : swizzle == 4 ? 64 : 128;
}

// Swizzle<B, M, S> of CuTe: bits M .. M+B-1 are exchanged with those S higher.
inline uint32_t cute_swizzle(uint32_t address, unsigned b, unsigned m, unsigned s) {
  const uint32_t bits = ((1u << b) - 1) << (m + s);
  return address ^ (address & bits) >> s;
}
inline uint32_t swizzle_bits(uint32_t address, unsigned code) {
  switch (code) {
    case 1:
      return cute_swizzle(address, 2, 5, 2);
    case 2:
      return cute_swizzle(address, 3, 4, 3);
    case 4:
      return cute_swizzle(address, 2, 4, 3);
    case 6:
      return cute_swizzle(address, 1, 4, 3);
    default:
      return address;
  }
}

// A matrix operand in shared memory: densely stacked atoms.
struct Placement {
  unsigned start, swizzle, rows, k, bits;
  bool mn_major;
  unsigned k_offset;

  unsigned stride() const {
    const unsigned span = span_of(swizzle);
    if (!mn_major) return 8 * span;
    return swizzle == 0 ? 128 : (swizzle == 1 ? 4 : 8) * span;
  }
  unsigned leading() const {
    const unsigned together = 128 / bits;
    if (!mn_major) return swizzle == 0 ? rows * 16 : 16;
    if (swizzle == 0) return 128 * (rows / together);
    return k * span_of(swizzle);
  }
  uint64_t bits64() const { return descriptor(start + k_offset, leading(), stride(), swizzle); }

  // Bit position of element (row, k_index), relative to the shared bytes, for 8 bits and more, and
  // for 4 and 6 bits K-major.
  uint64_t bit_of(unsigned row, unsigned k_index, bool packed) const {
    uint32_t byte, bit = 0;
    if (mn_major) {
      const unsigned together = 128 / bits, wide = span_of(swizzle) / 16;
      const unsigned lines = swizzle == 1 ? 4 : 8;
      const unsigned chunk = row / together;
      byte = row % together * bits / 8 + chunk % wide * 16 + k_index % lines * span_of(swizzle) +
             (swizzle == 0 ? chunk * stride() + k_index / lines * leading()
                           : chunk / wide * leading() + k_index / lines * stride());
    } else {
      // Sixteen elements of 4 or 6 bits take 16 bytes, except where two share a byte.
      const unsigned in_row = packed || bits >= 8 ? k_index * bits / 8 : k_index / 16 * 16;
      bit = packed || bits >= 8 ? k_index * bits % 8 : k_index % 16 * bits;
      byte = row % 8 * span_of(swizzle) + row / 8 * stride() + k_offset;
      byte += swizzle == 0 ? in_row / 16 * leading() + in_row % 16 : in_row;
    }
    const uint32_t absolute = kSmemBase + start + byte;
    // The swizzle moves 16-byte chunks; bits within one may run on from its first byte.
    return (uint64_t{tcgen05_swizzle(absolute)} - kSmemBase) * 8 + bit;
  }
  uint32_t tcgen05_swizzle(uint32_t address) const { return swizzle_bits(address, swizzle); }
};

inline void put_bits(std::vector<uint8_t>& bytes, uint64_t at, unsigned count, uint32_t code) {
  for (unsigned i = 0; i < count; ++i) {
    uint8_t& byte = bytes[(at + i) / 8];
    const auto mask = static_cast<uint8_t>(1u << (at + i) % 8);
    byte = static_cast<uint8_t>((code >> i & 1) != 0 ? byte | mask : byte & ~mask);
  }
}

// A matrix of small integers, or of E2M1's values.
struct Matrix {
  unsigned k;
  std::vector<uint32_t> codes;
  std::vector<double> values;
  Matrix(std::mt19937_64& random, unsigned rows, unsigned k_, ptxsim::Format format) : k(k_) {
    using ptxsim::Format;
    for (unsigned i = 0; i < rows * k; ++i) {
      const double value =
          format == Format::kE2m1
              ? ptxsim::decode_to_float(format, static_cast<uint32_t>(random() % 16))
              : static_cast<double>(static_cast<int>(random() % 9) - 4);
      codes.push_back(ptxsim::encode(format, value, ptxsim::Rounding::kNearestEven));
      values.push_back(value);
    }
  }
  double at(unsigned row, unsigned k_index) const { return values[size_t{row} * k + k_index]; }
  uint32_t code(unsigned row, unsigned k_index) const { return codes[size_t{row} * k + k_index]; }
};

// Half of a row's elements, and the metadata of its chunks: of 2 for 32 bits, of 4, of 4 pairs for
// 4.
struct SparseRows {
  unsigned chunk, together;  // elements of a chunk, and how many stand together
  std::vector<uint32_t> fours;
  // Clears in `full` all elements that are not stored; `stored` gets those that are, in their
  // order.
  SparseRows(std::mt19937_64& random, Matrix& full, std::vector<uint32_t>& stored, unsigned bits)
      : chunk(bits == 32  ? 2
              : bits == 4 ? 8
                          : 4),
        together(bits == 4 ? 2 : 1) {
    for (size_t first = 0; first < full.codes.size(); first += chunk) {
      unsigned low = static_cast<unsigned>(random() % (chunk == 2 ? 2 : 3));
      unsigned high = low + 1 + static_cast<unsigned>(random() % (3 - low % 3));
      fours.push_back(chunk == 2 ? (low == 0 ? 0b0100u : 0b1110u) : low | high << 2);
      for (unsigned i = 0; i < chunk; ++i) {
        const unsigned part = i / together;
        if (part == low || (chunk > 2 && part == high)) {
          stored.push_back(full.codes[first + i]);
        } else {
          full.codes[first + i] = 0;
          full.values[first + i] = 0;
        }
      }
    }
  }
};

}  // namespace tcgen05_test
