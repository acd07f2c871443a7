#include "bench/cpu/operands.hpp"

#include <cmath>
#include <cstring>
#include <random>

namespace dualgemm::bench {
namespace {

constexpr uint8_t kSmallestScale = 0x20, kLargestScale = 0x50;  // 2^-3 .. 2^3
constexpr float kTypicalA = 3.0f, kTypicalWeight = 3.0f;  // code times scale, root mean square

}  // namespace

Nvfp4Matrix Nvfp4Matrix::random(int64_t rows, int64_t cols, uint64_t seed) {
  Nvfp4Matrix matrix{rows, cols, AlignedArray<uint8_t>(rows * cols / 2),
                     AlignedArray<uint8_t>(rows * cols / kSfVec)};
  uint8_t* codes = matrix.codes.data();
  uint8_t* scales = matrix.scales.data();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    std::mt19937_64 random(seed * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(row));
    for (int64_t i = 0; i < cols / 2; i += 8) {
      const uint64_t bits = random();
      std::memcpy(codes + row * (cols / 2) + i, &bits, 8);  // cols % 16 == 0
    }
    for (int64_t i = 0; i < cols / kSfVec; ++i) {
      const uint64_t span = kLargestScale - kSmallestScale + 1;
      scales[row * (cols / kSfVec) + i] = static_cast<uint8_t>(kSmallestScale + random() % span);
    }
  }
  return matrix;
}

Expected<AlignedArray<float>> Nvfp4Matrix::decoded() {
  AlignedArray<float> values(rows * cols);
  DUALGEMM_TRY(dequantize_nvfp4(codes.data(), 0, scales.data(), ScaleLayout::kLinear, 0, 1.0f, rows,
                                cols, values.data(), 0));
  return values;
}

Operands::Operands(int64_t n, int64_t k, int64_t max_m, int weight_sets)
    : n_(n), k_(k), a_(Nvfp4Matrix::random(max_m, k, 1)), a_f16_(max_m * k), a_bf16_(max_m * k) {
  for (int set = 0; set < weight_sets; ++set) {
    gate_.push_back(Nvfp4Matrix::random(n, k, 2));
    up_.push_back(Nvfp4Matrix::random(n, k, 3));
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < max_m * k; ++i) {
    const uint8_t byte = a_.codes.data()[i / 2];
    const float code = decode_e2m1(i % 2 == 0 ? byte & 15 : byte >> 4);
    const float value = code * decode_scale(a_.scales.data()[i / kSfVec]);
    a_f16_.data()[i] = encode_f16(value);
    a_bf16_.data()[i] = encode_bf16(value);
  }
}

Buffers Operands::inputs(DataType a_type, int set) {
  const auto index = static_cast<size_t>(set);
  const bool quantised = a_type == DataType::kE2M1;
  const float alpha = 1.0f / (kTypicalA * kTypicalWeight * std::sqrt(static_cast<float>(k_)));
  const void* const wide = a_type == DataType::kBF16 ? a_bf16_.data() : a_f16_.data();
  return Buffers{.a = quantised ? a_.codes.data() : wide,
                 .a_scales = quantised ? a_.scales.data() : nullptr,
                 .gate = gate_[index].codes.data(),
                 .gate_scales = gate_[index].scales.data(),
                 .up = up_[index].codes.data(),
                 .up_scales = up_[index].scales.data(),
                 .alpha_gate = alpha,
                 .alpha_up = alpha};
}

}  // namespace dualgemm::bench
