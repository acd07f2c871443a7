// LU factors of batches, and cuBLASXt's products of the host's memory, against sums in float64: two
// parts of the program blas.cu.
#include <cublasXt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "blas_factors.hpp"

namespace {

int failed = 0;
void check(bool right, const char* what, int line) {
  if (right) return;
  ++failed;
  std::printf("blas_factors.cu:%d: not as it should be: %s\n", line, what);
}
#define CHECK(condition) check(condition, #condition, __LINE__)
#define CHECK_CUDA(call) check((call) == cudaSuccess, #call, __LINE__)
#define CHECK_BLAS(call) check((call) == CUBLAS_STATUS_SUCCESS, #call, __LINE__)

double next_value(uint32_t& state) {  // of [-1, 1)
  state = state * 1664525u + 1013904223u;
  return static_cast<double>(static_cast<int32_t>(state)) / 2147483648.0;
}

template <class T>
T* on_device(const std::vector<T>& host) {
  T* device = nullptr;
  CHECK_CUDA(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK_CUDA(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}
template <class T>
std::vector<T> on_host(const T* device, size_t count) {
  std::vector<T> host(count);
  CHECK_CUDA(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

cublasStatus_t factor(cublasHandle_t handle, int n, float** a, int lda, int* pivots, int* infos,
                      int batches) {
  return cublasSgetrfBatched(handle, n, a, lda, pivots, infos, batches);
}
cublasStatus_t factor(cublasHandle_t handle, int n, double** a, int lda, int* pivots, int* infos,
                      int batches) {
  return cublasDgetrfBatched(handle, n, a, lda, pivots, infos, batches);
}

// |L U - P A| is at most n eps |L| |U|, elementwise (Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd edition, theorem 9.3), and a half more for the rounding of A's type.
template <class T>
void check_factors(const T* before, const T* after, const int* pivots, int n, int lda) {
  std::vector<std::vector<double>> a(n, std::vector<double>(n));
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) a[row][column] = before[column * lda + row];
  for (int k = 0; k < n && pivots != nullptr; ++k) std::swap(a[k], a[pivots[k] - 1]);
  bool small = true, right = true;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k <= row && k <= column; ++k) {
        const double l = k == row ? 1 : after[k * lda + row], u = after[column * lda + k];
        sum += l * u;
        magnitude += std::fabs(l * u);
        small = small && (pivots == nullptr || std::fabs(l) <= 1);
      }
      const double bound = (n + 2) * std::numeric_limits<T>::epsilon() * magnitude;
      right = right && std::fabs(sum - a[row][column]) <= bound;
    }
  CHECK(small && right);
}

template <class T>
void factors_of(cublasHandle_t handle, bool exchanges) {
  constexpr int n = 6, lda = 8, batches = 3;
  uint32_t state = 7;
  std::vector<T> matrices(batches * lda * n);
  for (T& value : matrices) value = static_cast<T>(next_value(state));
  if (!exchanges)  // large on the diagonal
    for (int i = 0; i < batches * n; ++i) matrices[i * lda + i % n] += T(8);
  for (int row = 0; row < n; ++row)  // the last one is singular: column 4 is twice column 3
    matrices[(2 * n + 4) * lda + row] = 2 * matrices[(2 * n + 3) * lda + row];
  T* a = on_device(matrices);
  T** addresses = on_device(std::vector<T*>{a, a + lda * n, a + 2 * lda * n});
  int *pivots = nullptr, *infos = on_device(std::vector<int>(batches, -7));
  if (exchanges) pivots = on_device(std::vector<int>(n * batches));
  CHECK_BLAS(factor(handle, n, addresses, lda, pivots, infos, batches));
  CHECK(factor(handle, n, addresses, n - 1, pivots, infos, batches) == CUBLAS_STATUS_INVALID_VALUE);
  const std::vector<T> made = on_host(a, matrices.size());
  const std::vector<int> told = on_host(infos, batches);
  const std::vector<int> rows = exchanges ? on_host(pivots, n * batches) : std::vector<int>();
  CHECK(told[0] == 0 && told[1] == 0);
  for (int i = 0; i < batches; ++i)
    check_factors(&matrices[i * lda * n], &made[i * lda * n], exchanges ? &rows[i * n] : nullptr, n,
                  lda);
  CHECK(made[n] == matrices[n]);  // between the columns
  // Exact zeros: U(2, 2) is the first that is 0.
  const std::vector<T> zeros = {1, 1, 1, 1, 1, 1, 1, 1, 3};
  T* singular = on_device(zeros);
  CHECK_CUDA(cudaMemcpy(addresses, &singular, sizeof singular, cudaMemcpyHostToDevice));
  CHECK_BLAS(factor(handle, 3, addresses, 3, pivots, infos, 1));
  CHECK(on_host(infos, 1)[0] == 2);
  for (void* memory :
       {static_cast<void*>(a), static_cast<void*>(addresses), static_cast<void*>(infos),
        static_cast<void*>(pivots), static_cast<void*>(singular)})
    CHECK_CUDA(cudaFree(memory));
}

// C = alpha A^T B + beta C, all of it `element_bytes` wide numbers of the host or the GPU.
template <class T, class F>
void check_product(bool c_on_device, double relative, F&& f) {
  constexpr size_t m = 5, n = 4, k = 7;
  uint32_t state = 11;
  std::vector<T> a(k * m), b(k * n), c(m * n);
  for (std::vector<T>* values : {&a, &b, &c})
    for (T& value : *values) value = static_cast<T>(next_value(state));
  std::vector<T> result = c;
  T* device = c_on_device ? on_device(c) : nullptr;
  const T alpha = T(1.5), beta = T(-0.5);
  CHECK_BLAS(f(CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, a.data(), k, b.data(), k, &beta,
               c_on_device ? device : result.data(), m));
  if (c_on_device) result = on_host(device, m * n);
  CHECK_CUDA(cudaFree(device));
  bool right = true;
  for (size_t row = 0; row < m; ++row)
    for (size_t column = 0; column < n; ++column) {
      double sum = 0, magnitude = 0;
      for (size_t p = 0; p < k; ++p) {
        const double term = double{a[row * k + p]} * double{b[column * k + p]};
        sum += term;
        magnitude += std::fabs(term);
      }
      const double old = c[column * m + row];
      right = right && std::fabs(result[column * m + row] - (alpha * sum + beta * old)) <=
                           relative * (1.5 * magnitude + 0.5 * std::fabs(old));
    }
  CHECK(right);
}

}  // namespace

int factors() {
  cublasHandle_t handle;
  CHECK_BLAS(cublasCreate(&handle));
  for (const bool exchanges : {true, false}) {
    factors_of<float>(handle, exchanges);
    factors_of<double>(handle, exchanges);
  }
  CHECK_BLAS(cublasDestroy(handle));
  return failed;
}

int products_of_host() {
  cublasXtHandle_t handle;
  CHECK_BLAS(cublasXtCreate(&handle));
  int devices[] = {0, 1}, dimension = 0;
  CHECK(cublasXtDeviceSelect(handle, 2, devices) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK_BLAS(cublasXtDeviceSelect(handle, 1, devices));
  CHECK_BLAS(cublasXtSetBlockDim(handle, 64));
  CHECK_BLAS(cublasXtGetBlockDim(handle, &dimension));
  CHECK(dimension == 64);
  CHECK_BLAS(cublasXtSetPinningMemMode(handle, CUBLASXT_PINNING_ENABLED));
  for (const bool c_on_device : {false, true}) {
    check_product<float>(c_on_device, 1e-6,
                         [&](auto... arguments) { return cublasXtSgemm(handle, arguments...); });
    check_product<double>(c_on_device, 1e-15,
                          [&](auto... arguments) { return cublasXtDgemm(handle, arguments...); });
  }
  CHECK_BLAS(cublasXtDestroy(handle));
  CHECK(cublasXtDestroy(handle) == CUBLAS_STATUS_NOT_INITIALIZED);
  return failed;
}
