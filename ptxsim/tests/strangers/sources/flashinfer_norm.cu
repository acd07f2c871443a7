// FlashInfer's RMSNorm, beside the host's in double.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>
#include STRANGER

int main() {
  constexpr uint32_t kRows = 37, kColumns = 1024;
  constexpr float kEpsilon = 1e-5f;
  std::mt19937 random(1);
  std::normal_distribution<float> values;
  std::vector<half> in(kRows * kColumns), weight(kColumns), out(in.size());
  for (half& value : in) value = __float2half(values(random));
  for (half& value : weight) value = __float2half(values(random));
  half *d_in, *d_weight, *d_out;
  cudaMalloc(&d_in, in.size() * sizeof(half));
  cudaMalloc(&d_weight, weight.size() * sizeof(half));
  cudaMalloc(&d_out, out.size() * sizeof(half));
  cudaMemcpy(d_in, in.data(), in.size() * sizeof(half), cudaMemcpyHostToDevice);
  cudaMemcpy(d_weight, weight.data(), weight.size() * sizeof(half), cudaMemcpyHostToDevice);
  if (flashinfer::norm::RMSNorm<half>(d_in, d_weight, d_out, kRows, kColumns, kColumns, kColumns,
                                      kEpsilon) != cudaSuccess)
    return 1;
  cudaMemcpy(out.data(), d_out, out.size() * sizeof(half), cudaMemcpyDeviceToHost);
  size_t wrong = 0;
  for (uint32_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (uint32_t i = 0; i < kColumns; ++i)
      squares += std::pow(double{__half2float(in[row * kColumns + i])}, 2);
    const double scale = 1 / std::sqrt(squares / kColumns + kEpsilon);
    for (uint32_t i = 0; i < kColumns; ++i) {
      const double want = __half2float(in[row * kColumns + i]) * scale * __half2float(weight[i]);
      const double error = std::fabs(__half2float(out[row * kColumns + i]) - want);
      if (!(error <= std::fabs(want) / 1024 + 1e-7)) ++wrong;
    }
  }
  std::printf("%zu of %zu are wrong\n", wrong, out.size());
  cudaFree(d_in);
  cudaFree(d_weight);
  cudaFree(d_out);
  return wrong == 0 ? 0 : 1;
}
