// The kernels beside the GEMMs: requantisation bit for bit, the join for every type of product.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/e2m1.hpp"
#include "cuda/kernels/common/join.hpp"
#include "cuda/kernels/convert/requantize.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::cuda {
namespace {

using test::GuardedDevice;

void launch(const KernelLaunch& what) {
  const Status status = enqueue(what, nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  const Status done = synchronize(nullptr);
  ASSERT_TRUE(done.ok()) << done.message();
}

constexpr int64_t kRows = 11, kOutRows = 16, kCols = 528, kBatches = 2;

// Rows of values, requantised by the definition.
void expect_requantized(const std::vector<float>& values, const std::vector<uint8_t>& codes,
                        const std::vector<float>& scales) {
  for (int64_t row = 0; row < kBatches * kOutRows; ++row) {
    const float* const from = values.data() + row * kCols;
    uint32_t amax = 0;
    for (int64_t i = 0; i < kCols; ++i)
      amax = std::max(amax, std::bit_cast<uint32_t>(from[i]) & 0x7FFFFFFF);
    const float scale = std::bit_cast<float>(amax) / 448.0f;
    const float got = scales[static_cast<size_t>(row)];
    if (std::isnan(scale)) {
      EXPECT_TRUE(std::isnan(got)) << "row " << row;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(scale)) << "row " << row;
    for (int64_t i = 0; i < kCols; ++i) {
      const uint8_t want = core::encode_e4m3(from[i] / (scale == 0.0f ? 1.0f : scale));
      ASSERT_EQ(+codes[static_cast<size_t>(row * kCols + i)], +want)
          << "row " << row << " col " << i << " value " << from[i] << " scale " << scale;
    }
  }
}

std::vector<float> floats(const GuardedDevice& memory) {
  const std::vector<uint8_t> bytes = memory.download();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Requantize, Nvfp4RowsBitForBit) {
  DUALGEMM_NEEDS_GPU();
  test::Rng rng;
  Problem p{.m = 1, .n = kRows, .k = kCols, .l = kBatches};
  const core::ResolvedMatrix gate = core::resolve(p).gate;
  test::Operand operand(gate, kBatches);
  operand.randomize(gate, kBatches, rng, test::Values::kWide);
  std::fill_n(operand.scales.data() + 2 * gate.scale_ld, gate.sf_cols, uint8_t{0});  // a zero row
  operand.scales[3 * gate.scale_ld + 5] = 0x7F;
  std::vector<float> values(kBatches * kOutRows * kCols, 0.0f);
  for (int64_t l = 0; l < kBatches; ++l) {
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t col = 0; col < kCols; ++col) {
        const uint8_t pair = operand.data[(l * gate.batch_stride + row * gate.ld + col) / 2];
        const uint8_t scale =
            operand.scales[l * gate.scale_batch_stride + row * gate.scale_ld + col / 16];
        values[static_cast<size_t>((l * kOutRows + row) * kCols + col)] =
            core::decode_e2m1(static_cast<uint8_t>(pair >> (col % 2 * 4))) *
            core::decode_scale(scale);
      }
    }
  }
  GuardedDevice codes(operand.data.size(), 1, operand.data.data());
  GuardedDevice scales(operand.scales.size(), 1, operand.scales.data());
  GuardedDevice out(kBatches * kOutRows * kCols, 0), out_scales(kBatches * kOutRows * 4, 0);
  launch(
      requantize_launch({.source = {codes.data(), scales.data(), gate.row_bytes(),
                                    gate.batch_stride / 2, gate.scale_ld, gate.scale_batch_stride},
                         .extent = {kRows, kOutRows, kBatches, kCols},
                         .codes = out.data(),
                         .scales = reinterpret_cast<float*>(out_scales.data())}));
  expect_requantized(values, out.download(), floats(out_scales));
}

TEST(Requantize, SixteenBitRowsBitForBit) {
  DUALGEMM_NEEDS_GPU();
  test::Rng rng;
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (const int64_t ld : {kCols, kCols + 3}) {
      std::vector<uint16_t> halves(kBatches * kRows * ld);
      std::vector<float> values(kBatches * kOutRows * kCols, 0.0f);
      for (int64_t i = 0; i < kBatches * kRows; ++i) {
        for (int64_t col = 0; col < ld; ++col) {
          test::store_element(halves.data(), type, i * ld + col, rng.normal());
          if (col < kCols) {
            values[static_cast<size_t>((i / kRows * kOutRows + i % kRows) * kCols + col)] =
                test::load_element(halves.data(), type, i * ld + col);
          }
        }
      }
      GuardedDevice from(static_cast<int64_t>(halves.size() * 2), 2, halves.data());
      GuardedDevice out(kBatches * kOutRows * kCols, 0), out_scales(kBatches * kOutRows * 4, 0);
      launch(requantize_launch({.source = {from.data(), ld * 2, kRows * ld * 2},
                                .extent = {kRows, kOutRows, kBatches, kCols},
                                .codes = out.data(),
                                .scales = reinterpret_cast<float*>(out_scales.data())},
                               type == DataType::kF16 ? HalfType::kF16 : HalfType::kBF16));
      expect_requantized(values, out.download(), floats(out_scales));
    }
  }
}

// Products that fp16 holds exactly give the same D, stored either way; columns beyond n are poison.
TEST(Join, ProductsInFp16AndInFp32) {
  DUALGEMM_NEEDS_GPU();
  test::Rng rng;
  constexpr int64_t kJoinRows = 37, kN = 45, kLd = 48;
  std::vector<uint16_t> halves[2];
  std::vector<float> wide[2];
  for (int i = 0; i < 2; ++i) {
    halves[i].assign(kJoinRows * kLd, 0xFFFF);
    wide[i].assign(kJoinRows * kLd, std::nanf(""));
    for (int64_t at = 0; at < kJoinRows * kLd; ++at) {
      if (at % kLd >= kN) continue;
      const auto index = static_cast<size_t>(at);
      halves[i][index] = core::encode_f16(rng.normal() * 4.0f);
      wide[i][index] = core::decode_f16(halves[i][index]);
    }
  }
  for (const OutputType type : {OutputType::kF16, OutputType::kBF16, OutputType::kF32}) {
    for (int act = 0; act < core::kEnumCount<ActivationKind>; ++act) {
      std::vector<uint8_t> results[2];
      for (const bool half : {false, true}) {
        const int64_t bytes = kJoinRows * kLd * (half ? 2 : 4);
        const auto data = [&](int i) -> const void* {
          return half ? static_cast<const void*>(halves[i].data()) : wide[i].data();
        };
        GuardedDevice gate(bytes, 0, data(0)), up(bytes, 0, data(1));
        GuardedDevice d(kJoinRows * kN * bytes_of(type), bytes_of(type));  // hardly aligned
        launch(join_launch({.gate = gate.data(),
                            .up = up.data(),
                            .product_ld = kLd,
                            .d = d.data(),
                            .d_row_bytes = kN * bytes_of(type),
                            .d_batch_bytes = 0,
                            .a_row_scale = nullptr,
                            .requantized_rows = nullptr,
                            .requantized_gate = nullptr,
                            .requantized_up = nullptr,
                            .requantized_stride = 0,
                            .alpha_gate_per_batch = nullptr,
                            .alpha_up_per_batch = nullptr,
                            .alpha_gate = 0.75f,
                            .alpha_up = -1.25f,
                            .bias = {},
                            .act = {static_cast<ActKind>(act), 1.5f, 0.5f, 6.0f},
                            .rows = kJoinRows,
                            .n = kN,
                            .batches = 1},
                           half ? OutputType::kF16 : OutputType::kF32, type));
        results[half] = d.download();
      }
      EXPECT_EQ(results[0], results[1]) << name_of(type) << ", act " << act;
      EXPECT_NE(results[0], std::vector<uint8_t>(results[0].size(), test::kPoison));
    }
  }
}

}  // namespace
}  // namespace dualgemm::cuda
