// Every code with every scale byte through the GPU's decoder, against values written out by hand.
#include "cuda/kernels/portable/dequantize.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace {

using dualgemm::Status;

struct DeviceFree {
  void operator()(void* pointer) const { cudaFree(pointer); }
};
template <class T>
std::unique_ptr<T, DeviceFree> device_array(size_t count) {
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, count * sizeof(T)), cudaSuccess);
  return std::unique_ptr<T, DeviceFree>(static_cast<T*>(pointer));
}

constexpr double kE2M1[16] = {0.0,  0.5,  1.0,  1.5,  2.0,  3.0,  4.0,  6.0,
                              -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0};

double scale_value(int byte) {  // OCP E4M3, sign ignored
  const int exponent = (byte >> 3) & 15, mantissa = byte & 7;
  if (exponent == 15 && mantissa == 7) return std::nan("");
  return exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
}

TEST(Dequantize, EveryCodeWithEveryScale) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    GTEST_SKIP() << "no CUDA device on this machine";
  }
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
  const size_t canary = kRows * kCols;
  auto device_codes = device_array<uint8_t>(codes.size());
  auto device_scales = device_array<uint8_t>(scales.size());
  auto device_out = device_array<float>(canary + 1);
  ASSERT_EQ(cudaMemcpy(device_codes.get(), codes.data(), codes.size(), cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpy(device_scales.get(), scales.data(), scales.size(), cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaMemset(device_out.get(), 0x5A, (canary + 1) * sizeof(float)), cudaSuccess);

  const Status status = dualgemm::cuda::dequantize_nvfp4(device_codes.get(), device_scales.get(),
                                                         kRows, kCols, device_out.get(), nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<float> out(canary + 1);
  ASSERT_EQ(
      cudaMemcpy(out.data(), device_out.get(), out.size() * sizeof(float), cudaMemcpyDeviceToHost),
      cudaSuccess);

  for (int row = 0; row < kRows; ++row) {
    for (int col = 0; col < kCols; ++col) {
      const int code = col < 16 ? col : 31 - col;
      const double expected = kE2M1[code] * scale_value(row);
      const float observed = out[row * kCols + col];
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(observed)) << "scale byte " << row << " code " << code;
      } else {
        EXPECT_EQ(expected, observed) << "scale byte " << row << " code " << code;
        EXPECT_EQ(std::signbit(expected), std::signbit(observed)) << row << " " << code;
      }
    }
  }
  uint32_t last = 0;
  std::memcpy(&last, &out[canary], sizeof(last));
  EXPECT_EQ(last, 0x5A5A5A5Au) << "wrote past the end";
}

TEST(Dequantize, RefusesBadExtents) {
  const Status odd = dualgemm::cuda::dequantize_nvfp4(nullptr, nullptr, 1, 24, nullptr, nullptr);
  EXPECT_EQ(odd.argument(), "cols");
  const Status negative =
      dualgemm::cuda::dequantize_nvfp4(nullptr, nullptr, -1, 16, nullptr, nullptr);
  EXPECT_EQ(negative.argument(), "rows");
  const Status huge = dualgemm::cuda::dequantize_nvfp4(nullptr, nullptr, int64_t{1} << 60,
                                                       int64_t{1} << 10, nullptr, nullptr);
  EXPECT_EQ(huge.code(), dualgemm::StatusCode::kOverflow);
}

}  // namespace
