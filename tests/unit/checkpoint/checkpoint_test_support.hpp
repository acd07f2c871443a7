// Small NVFP4 layers with known contents, and a decoder that shares no code with the library.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "support/rng.hpp"

namespace dualgemm::checkpoint {

// Random codes (low_even) and finite scales (linear) of an n x k weight.
struct RawWeight {
  int64_t n, k;
  std::vector<uint8_t> codes, scales;

  RawWeight(int64_t n_, int64_t k_, test::Rng& rng)
      : n(n_),
        k(k_),
        codes(static_cast<size_t>(n * k / 2)),
        scales(static_cast<size_t>(n * k / 16)) {
    for (uint8_t& code : codes) code = rng.byte();
    for (uint8_t& scale : scales) scale = static_cast<uint8_t>(rng.integer(0, 0x7E));
  }
};

inline double e2m1_value(unsigned code) {
  constexpr double kMagnitudes[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8 ? -1.0 : 1.0) * kMagnitudes[code & 7];
}
inline double e4m3_value(uint8_t bits) {  // non-negative, not NaN
  const int exponent = bits >> 3, mantissa = bits & 7;
  return exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
}
inline size_t scale_offset(ScaleLayout layout, int64_t row, int64_t col, int64_t cols) {
  if (layout == ScaleLayout::kLinear) return static_cast<size_t>(row * cols + col);
  const int64_t tile = (row / 128) * ((cols + 3) / 4) + col / 4;
  return static_cast<size_t>(tile * 512 + (row % 32) * 16 + (row % 128 / 32) * 4 + col % 4);
}

// Every value of the matrix in double: e2m1 * e4m3 * global scale.
inline std::vector<double> decode(const uint8_t* codes, const uint8_t* scales, ScaleLayout layout,
                                  NibbleOrder order, int64_t n, int64_t k, double global) {
  std::vector<double> values;
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t col = 0; col < k; ++col) {
      const uint8_t byte = codes[row * (k / 2) + col / 2];
      const bool high = (col % 2 == 1) == (order == NibbleOrder::kLowEven);
      const double scale = e4m3_value(scales[scale_offset(layout, row, col / 16, k / 16)]);
      values.push_back(e2m1_value(high ? byte >> 4 : byte & 15) * scale * global);
    }
  }
  return values;
}
inline std::vector<double> decode(const RawWeight& raw, double global) {
  return decode(raw.codes.data(), raw.scales.data(), ScaleLayout::kLinear, NibbleOrder::kLowEven,
                raw.n, raw.k, global);
}
inline std::vector<double> decode(const MlpLayer& layer, const LayerOperand& operand) {
  return decode(operand.codes(), operand.scales.data(), layer.scale_layout, layer.nibble_order,
                layer.n, layer.k, operand.dequant_global_scale);
}

template <class T>
Status add_bytes(TensorFile& file, const std::string& name, ElementType type,
                 std::vector<int64_t> shape, const std::vector<T>& values) {
  return file.add_copy(name, type, std::move(shape), values.data(), values.size() * sizeof(T));
}

inline void add_scalar(TensorFile& file, const std::string& name, float value,
                       std::vector<int64_t> shape = {}) {
  ASSERT_TRUE(add_bytes(file, name, ElementType::kF32, std::move(shape), std::vector{value}).ok());
}

inline void add_modelopt(TensorFile& file, const std::string& module, const RawWeight& raw,
                         std::vector<float> global, float input) {
  ASSERT_TRUE(
      add_bytes(file, module + ".weight", ElementType::kU8, {raw.n, raw.k / 2}, raw.codes).ok());
  ASSERT_TRUE(add_bytes(file, module + ".weight_scale", ElementType::kF8E4M3, {raw.n, raw.k / 16},
                        raw.scales)
                  .ok());
  std::vector<int64_t> shape;
  if (global.size() > 1) shape.push_back(static_cast<int64_t>(global.size()));
  ASSERT_TRUE(add_bytes(file, module + ".weight_scale_2", ElementType::kF32, shape, global).ok());
  if (input > 0) add_scalar(file, module + ".input_scale", input);
}

inline void add_compressed(TensorFile& file, const std::string& module, const RawWeight& raw,
                           std::vector<float> global_divisors, float input_divisor) {
  ASSERT_TRUE(
      add_bytes(file, module + ".weight_packed", ElementType::kU8, {raw.n, raw.k / 2}, raw.codes)
          .ok());
  ASSERT_TRUE(add_bytes(file, module + ".weight_scale", ElementType::kF8E4M3, {raw.n, raw.k / 16},
                        raw.scales)
                  .ok());
  ASSERT_TRUE(add_bytes(file, module + ".weight_global_scale", ElementType::kF32,
                        {static_cast<int64_t>(global_divisors.size())}, global_divisors)
                  .ok());
  if (input_divisor > 0) add_scalar(file, module + ".input_global_scale", input_divisor, {1});
}

}  // namespace dualgemm::checkpoint
