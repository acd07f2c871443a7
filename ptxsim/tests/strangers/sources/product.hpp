// A product of matrices of bf16 and what it should be, computed on the host in double.
#pragma once

#include <cuda_bf16.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

struct Product {
  size_t m, n, k;
  bool n_major;  // B is N x K, else K x N
  std::vector<__nv_bfloat16> a, b;
  __nv_bfloat16 *d_a = nullptr, *d_b = nullptr, *d_c = nullptr;

  Product(size_t rows, size_t columns, size_t depth, bool b_has_rows_of_k)
      : m(rows), n(columns), k(depth), n_major(b_has_rows_of_k), a(m * k), b(n * k) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> values(-1, 1);
    for (auto& value : a) value = __float2bfloat16(values(random));
    for (auto& value : b) value = __float2bfloat16(values(random));
    cudaMalloc(&d_a, m * k * 2);
    cudaMalloc(&d_b, n * k * 2);
    cudaMalloc(&d_c, m * n * 2);
    cudaMemcpy(d_a, a.data(), m * k * 2, cudaMemcpyHostToDevice);
    cudaMemcpy(d_b, b.data(), n * k * 2, cudaMemcpyHostToDevice);
  }

  // 0: right. Sums are rounded to bf16 once: half a unit in the last of 8 bits.
  int compare() const {
    std::vector<__nv_bfloat16> c(m * n);
    if (cudaMemcpy(c.data(), d_c, m * n * 2, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    size_t wrong = 0;
    for (size_t row = 0; row < m; ++row)
      for (size_t column = 0; column < n; ++column) {
        double sum = 0, size = 0;
        for (size_t i = 0; i < k; ++i) {
          const double x = __bfloat162float(a[row * k + i]);
          const double y = __bfloat162float(b[n_major ? column * k + i : i * n + column]);
          sum += x * y;
          size += std::fabs(x * y);
        }
        const double found = __bfloat162float(c[row * n + column]);
        if (!(std::fabs(found - sum) <= std::fabs(sum) / 256 + size * 1e-6) && wrong++ < 5)
          std::printf("row %zu column %zu: %g, must be %g\n", row, column, found, sum);
      }
    std::printf("%zu of %zu are wrong\n", wrong, m * n);
    cudaFree(d_a);
    cudaFree(d_b);
    cudaFree(d_c);
    return wrong == 0 ? 0 : 1;
  }
};
