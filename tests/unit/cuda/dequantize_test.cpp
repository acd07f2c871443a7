// Every code with every scale byte through the GPU's decoders, against values written out by hand;
// both layouts, any alignment, rows beyond the last.
#include "cuda/kernels/convert/dequantize.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/half.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "support/hand_made.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::cuda {
namespace {

using test::GuardedDevice;

double value_of(uint16_t bits, OutputType type) {
  return type == OutputType::kF16 ? core::decode_f16(bits) : core::decode_bf16(bits);
}

// `launch` left these values in `out`.
std::vector<uint16_t> values_after(const KernelLaunch& launch, GuardedDevice& out) {
  const Status status = enqueue(launch, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(synchronize(nullptr).ok());
  const std::vector<uint8_t> bytes = out.download();
  std::vector<uint16_t> values(bytes.size() / 2);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void expect_value(double expected, double observed, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(observed)) << what;
    return;
  }
  EXPECT_EQ(expected, observed) << what;
  EXPECT_EQ(std::signbit(expected), std::signbit(observed)) << what;
}

TEST(Dequantize, EveryCodeWithEveryScale) {
  DUALGEMM_NEEDS_GPU();
  constexpr int kRows = 256, kCols = 32;  // row = scale byte; block 0 counts up, block 1 down
  std::vector<uint8_t> codes(kRows * kCols / 2), scales(kRows * 2);
  for (int row = 0; row < kRows; ++row) {
    scales[row * 2] = scales[row * 2 + 1] = static_cast<uint8_t>(row);
    for (int pair = 0; pair < kCols / 2; ++pair) {
      const int even = pair < 8 ? 2 * pair : 31 - 2 * pair;
      const int odd = pair < 8 ? 2 * pair + 1 : 30 - 2 * pair;
      codes[row * kCols / 2 + pair] = static_cast<uint8_t>((even & 15) | (odd & 15) << 4);
    }
  }
  for (const OutputType type : {OutputType::kF16, OutputType::kBF16}) {
    GuardedDevice on_codes(kRows * kCols / 2, 0, codes.data()),
        on_scales(kRows * 2, 0, scales.data());
    GuardedDevice out(kRows * kCols * 2, 0);
    const auto values = values_after(
        dequantize_launch({.source = {on_codes.data(), on_scales.data(), kCols / 2, 0, 2, 0},
                           .extent = {kRows, kRows, 1, kCols},
                           .out = out.data()},
                          type),
        out);
    for (int i = 0; i < kRows * kCols; ++i) {
      const int row = i / kCols, col = i % kCols, code = col < 16 ? col : 31 - col;
      expect_value(test::kE2M1Values[code] * test::e4m3_value(row),
                   value_of(values[static_cast<size_t>(i)], type),
                   std::string(name_of(type)) + ", scale byte " + std::to_string(row) + ", code " +
                       std::to_string(code));
    }
  }
}

// Padding between rows, blocks and batches is poison: 0xFF, a NaN as a scale.
TEST(Dequantize, LayoutsStridesAndRowsBeyondTheLast) {
  DUALGEMM_NEEDS_GPU();
  test::Rng rng;
  for (const auto& [rows, cols, batches] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 16, 1}, {5, 48, 3}, {130, 80, 2}, {3, 8208, 1}}) {
    for (const bool swizzled : {false, true}) {
      for (const int64_t shift : {0, 1}) {
        Problem p{.m = 1, .n = rows, .k = cols, .l = batches};
        p.gate.ld = cols + 6;
        p.gate.scale_layout = swizzled ? ScaleLayout::kSwizzled128x4 : ScaleLayout::kLinear;
        if (!swizzled) p.gate.scale_ld = cols / 16 + 3;
        const core::ResolvedMatrix gate = core::resolve(p).gate;
        test::Operand operand(gate, batches);
        operand.randomize(gate, batches, rng, test::Values::kWide);
        GuardedDevice codes(operand.data.size(), shift, operand.data.data());
        GuardedDevice scales(operand.scales.size(), shift, operand.scales.data());
        const int64_t out_rows = rows + 4;
        GuardedDevice out(batches * out_rows * cols * 2, 0);
        const auto values = values_after(
            dequantize_launch(
                {.source = {codes.data(), scales.data(), gate.row_bytes(), gate.batch_stride / 2,
                            swizzled ? 0 : gate.scale_ld, gate.scale_batch_stride},
                 .extent = {rows, out_rows, batches, cols},
                 .out = out.data()},
                OutputType::kF16),
            out);
        for (size_t i = 0; i < values.size(); ++i) {
          const auto at = static_cast<int64_t>(i);
          const int64_t col = at % cols, row = at / cols % out_rows, l = at / (cols * out_rows);
          double expected = 0.0;
          if (row < rows) {
            const uint8_t pair = operand.data[(l * gate.batch_stride + row * gate.ld + col) / 2];
            expected =
                test::kE2M1Values[pair >> (col % 2 * 4) & 15] *
                test::e4m3_value(
                    operand.scales[l * gate.scale_batch_stride + gate.scale_map()(row, col / 16)]);
          }
          ASSERT_EQ(expected, value_of(values[i], OutputType::kF16))
              << rows << " x " << cols << (swizzled ? " swizzled" : " linear") << ", shift "
              << shift << ", batch " << l << " row " << row << " col " << col;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::cuda
