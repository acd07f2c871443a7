// Products of cuBLAS and cuBLASLt against sums in float64: `blas <part>`. It returns 0 when
// everything was as it should be, on a GPU too.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "blas_factors.hpp"

namespace {

int failed = 0;
void check(bool right, const char* what, int line) {
  if (right) return;
  ++failed;
  std::printf("blas.cu:%d: not as it should be: %s\n", line, what);
}
#define CHECK(condition) check(condition, #condition, __LINE__)
#define CHECK_CUDA(call) check((call) == cudaSuccess, #call, __LINE__)
#define CHECK_BLAS(call) check((call) == CUBLAS_STATUS_SUCCESS, #call, __LINE__)

template <class T>
double number(T value) {
  return static_cast<double>(static_cast<float>(value));
}
template <>
double number(double value) {
  return value;
}

// Values on the device and the host: small multiples of 1/8, exact in every type; `lines` of them,
// `ld` apart, of which `length` are written.
template <class T>
struct Values {
  std::vector<T> host;
  T* device = nullptr;
  Values(int lines, int length, int ld, int seed) : host(static_cast<size_t>(lines) * ld) {
    CHECK_CUDA(cudaMalloc(&device, host.size() * sizeof(T)));
    uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 1;
    for (int line = 0; line < lines; ++line) {
      for (int i = 0; i < length; ++i) {
        state = state * 1664525u + 1013904223u;
        host[line * ld + i] = T(static_cast<float>(static_cast<int>(state >> 27) - 16) / 8);
      }
      CHECK_CUDA(cudaMemcpy(device + line * ld, &host[line * ld], length * sizeof(T),
                            cudaMemcpyHostToDevice));
    }
  }
  ~Values() { cudaFree(device); }
  std::vector<T> result(int lines, int length, int ld) const {
    std::vector<T> values(host.size());
    CHECK_CUDA(cudaMemcpy2D(values.data(), ld * sizeof(T), device, ld * sizeof(T),
                            length * sizeof(T), lines, cudaMemcpyDeviceToHost));
    return values;
  }
};

struct Shape {
  int m, n, k;
  bool ta, tb;
};

template <class T>
double element(const std::vector<T>& v, int ld, bool transposed, int row, int column) {
  return number(transposed ? v[row * ld + column] : v[column * ld + row]);
}

// |result - (alpha A B + beta C)| within `relative` of the sum of magnitudes, everywhere.
template <class In, class Out>
bool is_product(const Shape& s, const Values<In>& a, int lda, const Values<In>& b, int ldb,
                const Values<Out>& c, int ldc, double alpha, double beta, double relative) {
  const std::vector<Out> result = c.result(s.n, s.m, ldc);
  for (int row = 0; row < s.m; ++row)
    for (int column = 0; column < s.n; ++column) {
      double sum = 0, magnitude = 0;
      for (int p = 0; p < s.k; ++p) {
        const double term =
            element(a.host, lda, s.ta, row, p) * element(b.host, ldb, s.tb, p, column);
        sum += term;
        magnitude += std::fabs(term);
      }
      const double old = number(c.host[column * ldc + row]);
      const double expected = alpha * sum + beta * old;
      const double bound = relative * (std::fabs(alpha) * magnitude + std::fabs(beta * old));
      if (!(std::fabs(number(result[column * ldc + row]) - expected) <= bound)) return false;
    }
  return true;
}

// f(a, lda, b, ldb, c, ldc) does the product.
template <class In, class Out, class F>
void check_product(const Shape& s, double alpha, double beta, double relative, F&& f) {
  const int lda = (s.ta ? s.k : s.m) + 3, ldb = (s.tb ? s.n : s.k) + 1, ldc = s.m + 2;
  Values<In> a(s.ta ? s.m : s.k, s.ta ? s.k : s.m, lda, 1);
  Values<In> b(s.tb ? s.k : s.n, s.tb ? s.n : s.k, ldb, 2);
  Values<Out> c(s.n, s.m, ldc, 3);
  CHECK_BLAS(f(a.device, lda, b.device, ldb, c.device, ldc));
  CHECK((is_product(s, a, lda, b, ldb, c, ldc, alpha, beta, relative)));
}

constexpr double kFloat = 1e-6, kDouble = 1e-14, kHalf = 2e-3, kBf16 = 1e-2;
constexpr Shape kShapes[] = {{7, 5, 9, false, false},  {7, 5, 9, true, false},
                             {7, 5, 9, false, true},   {7, 5, 9, true, true},
                             {1, 1, 33, false, false}, {16, 3, 1, true, false}};

cublasOperation_t op(bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

void gemm_of_letters(cublasHandle_t handle) {
  for (const Shape& s : kShapes) {
    const float alpha = 1.5f, beta = -0.5f;
    check_product<float, float>(s, alpha, beta, kFloat,
                                [&](auto a, int lda, auto b, int ldb, auto c, int ldc) {
                                  return cublasSgemm(handle, op(s.ta), op(s.tb), s.m, s.n, s.k,
                                                     &alpha, a, lda, b, ldb, &beta, c, ldc);
                                });
    const double one = 1, none = 0;
    check_product<double, double>(s, one, none, kDouble,
                                  [&](auto a, int lda, auto b, int ldb, auto c, int ldc) {
                                    return cublasDgemm(handle, op(s.ta), op(s.tb), s.m, s.n, s.k,
                                                       &one, a, lda, b, ldb, &none, c, ldc);
                                  });
    const __half half(0.5f), zero(0.0f);
    check_product<__half, __half>(s, 0.5, 0, kHalf,
                                  [&](auto a, int lda, auto b, int ldb, auto c, int ldc) {
                                    return cublasHgemm(handle, op(s.ta), op(s.tb), s.m, s.n, s.k,
                                                       &half, a, lda, b, ldb, &zero, c, ldc);
                                  });
  }
}

template <class In, class Out>
void gemm_ex(cublasHandle_t handle, cudaDataType in, cudaDataType out, double relative) {
  for (const Shape& s : kShapes) {
    const float alpha = 2, beta = 0.25f;
    check_product<In, Out>(
        s, alpha, beta, relative, [&](auto a, int lda, auto b, int ldb, auto c, int ldc) {
          return cublasGemmEx(handle, op(s.ta), op(s.tb), s.m, s.n, s.k, &alpha, a, in, lda, b, in,
                              ldb, &beta, c, out, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
        });
  }
}

// Three products of which B is the same; scales on the device.
void batches_and_device_scales(cublasHandle_t handle) {
  const float scales[] = {2, 1};
  float* on_device;
  CHECK_CUDA(cudaMalloc(&on_device, sizeof scales));
  CHECK_CUDA(cudaMemcpy(on_device, scales, sizeof scales, cudaMemcpyHostToDevice));
  Values<float> a(15, 4, 4, 4), b(6, 5, 5, 5), c(18, 4, 4, 6);
  CHECK_BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  CHECK_BLAS(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 6, 5, on_device,
                                       a.device, 4, 20, b.device, 5, 0, on_device + 1, c.device, 4,
                                       24, 3));
  CHECK_BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  const std::vector<float> result = c.result(18, 4, 4);
  for (int batch = 0; batch < 3; ++batch)
    for (int row = 0; row < 4; ++row)
      for (int column = 0; column < 6; ++column) {
        double sum = 0;
        for (int p = 0; p < 5; ++p)
          sum += double(a.host[batch * 20 + p * 4 + row]) * double(b.host[column * 5 + p]);
        const int at = batch * 24 + column * 4 + row;
        CHECK(std::fabs(result[at] - (2 * sum + c.host[at])) < 1e-5);
      }
  CHECK_CUDA(cudaFree(on_device));
}

// The same by arrays of addresses, in an order that no stride has; forms of 64-bit sizes, too.
void batches_by_addresses(cublasHandle_t handle) {
  const float alpha = 2, beta = 1;
  const int order[] = {2, 0, 1};
  for (const bool wide : {false, true})
    for (const bool typed : {false, true}) {
      Values<float> a(15, 4, 4, 4), b(6, 5, 5, 5), c(18, 4, 4, 6);
      const float* addresses[9];
      for (int batch = 0; batch < 3; ++batch) {
        addresses[batch] = a.device + order[batch] * 20;
        addresses[3 + batch] = b.device;
        addresses[6 + batch] = c.device + batch * 24;
      }
      const void** on_device;
      CHECK_CUDA(cudaMalloc(&on_device, sizeof addresses));
      CHECK_CUDA(cudaMemcpy(on_device, addresses, sizeof addresses, cudaMemcpyHostToDevice));
      const auto floats = (const float* const*)on_device;
      const auto results = (float* const*)on_device;
      const auto voids = (void* const*)on_device;
      if (typed && wide)
        CHECK_BLAS(cublasGemmBatchedEx_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 6, 5, &alpha,
                                          on_device, CUDA_R_32F, 4, on_device + 3, CUDA_R_32F, 5,
                                          &beta, voids + 6, CUDA_R_32F, 4, 3, CUBLAS_COMPUTE_32F,
                                          CUBLAS_GEMM_DEFAULT));
      else if (typed)
        CHECK_BLAS(cublasGemmBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 6, 5, &alpha, on_device,
                                       CUDA_R_32F, 4, on_device + 3, CUDA_R_32F, 5, &beta,
                                       voids + 6, CUDA_R_32F, 4, 3, CUBLAS_COMPUTE_32F,
                                       CUBLAS_GEMM_DEFAULT));
      else if (wide)
        CHECK_BLAS(cublasSgemmBatched_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 6, 5, &alpha, floats,
                                         4, floats + 3, 5, &beta, results + 6, 4, 3));
      else
        CHECK_BLAS(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 6, 5, &alpha, floats, 4,
                                      floats + 3, 5, &beta, results + 6, 4, 3));
      const std::vector<float> result = c.result(18, 4, 4);
      for (int batch = 0; batch < 3; ++batch)
        for (int row = 0; row < 4; ++row)
          for (int column = 0; column < 6; ++column) {
            double sum = 0;
            for (int p = 0; p < 5; ++p)
              sum +=
                  double(a.host[order[batch] * 20 + p * 4 + row]) * double(b.host[column * 5 + p]);
            const int at = batch * 24 + column * 4 + row;
            CHECK(std::fabs(result[at] - (2 * sum + c.host[at])) < 1e-5);
          }
      CHECK_CUDA(cudaFree(on_device));
    }
}

// What the forms without _64 compute, the forms with it compute, too; copies likewise.
void wide_sizes(cublasHandle_t handle) {
  for (const Shape& s : kShapes) {
    const float alpha = 1.5f, beta = -0.5f;
    const double one = 1, none = 0;
    check_product<float, float>(s, alpha, beta, kFloat,
                                [&](auto a, int lda, auto b, int ldb, auto c, int ldc) {
                                  return cublasSgemm_64(handle, op(s.ta), op(s.tb), s.m, s.n, s.k,
                                                        &alpha, a, lda, b, ldb, &beta, c, ldc);
                                });
    check_product<float, float>(
        s, alpha, beta, kFloat, [&](auto a, int lda, auto b, int ldb, auto c, int ldc) {
          return cublasSgemmStridedBatched_64(handle, op(s.ta), op(s.tb), s.m, s.n, s.k, &alpha, a,
                                              lda, 0, b, ldb, 0, &beta, c, ldc, 0, 1);
        });
    check_product<double, double>(s, one, none, kDouble,
                                  [&](auto a, int lda, auto b, int ldb, auto c, int ldc) {
                                    return cublasDgemm_64(handle, op(s.ta), op(s.tb), s.m, s.n, s.k,
                                                          &one, a, lda, b, ldb, &none, c, ldc);
                                  });
    check_product<__half, float>(
        s, alpha, beta, kHalf, [&](auto a, int lda, auto b, int ldb, auto c, int ldc) {
          return cublasGemmEx_64(handle, op(s.ta), op(s.tb), s.m, s.n, s.k, &alpha, a, CUDA_R_16F,
                                 lda, b, CUDA_R_16F, ldb, &beta, c, CUDA_R_32F, ldc,
                                 CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
        });
  }
  const float values[] = {1, 2, 3, 4, 5, 6};
  float back[6] = {}, *on_device;
  CHECK_CUDA(cudaMalloc(&on_device, sizeof values));
  CHECK_BLAS(cublasSetVector_64(6, 4, values, 1, on_device, 1));
  CHECK_BLAS(cublasGetMatrix_64(2, 3, 4, on_device, 2, back, 2));
  for (int i = 0; i < 6; ++i) CHECK(back[i] == values[i]);
  CHECK_CUDA(cudaFree(on_device));
}

// As row x op(A)^T of one row: its elements are `lda` apart, those of the result `ldc`.
void matrix_and_vector(cublasHandle_t handle) {
  for (const int m : {1, 7})
    for (const bool is_plain : {true, false}) {
      const Shape s{1, m, 9, false, is_plain};
      const int rows = is_plain ? s.n : s.k, columns = is_plain ? s.k : s.n;
      const float alpha = 1.5f, beta = -0.5f;
      check_product<float, float>(s, alpha, beta, kFloat,
                                  [&](auto x, int step, auto a, int lda, auto y, int step_of_y) {
                                    return cublasSgemv(handle, op(!is_plain), rows, columns, &alpha,
                                                       a, lda, x, step, &beta, y, step_of_y);
                                  });
      const double one = 1, none = 0;
      check_product<double, double>(
          s, one, none, kDouble, [&](auto x, int step, auto a, int lda, auto y, int step_of_y) {
            return cublasDgemv_64(handle, op(!is_plain), rows, columns, &one, a, lda, x, step,
                                  &none, y, step_of_y);
          });
    }
}

void products() {
  cublasHandle_t handle;
  cudaStream_t stream, is = nullptr;
  CHECK_BLAS(cublasCreate(&handle));
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_BLAS(cublasSetStream(handle, stream));
  CHECK_BLAS(cublasGetStream(handle, &is));
  CHECK(is == stream);
  CHECK_BLAS(cublasSetStream(handle, nullptr));
  int version = 0;
  CHECK_BLAS(cublasGetVersion(handle, &version));
  CHECK(version >= 130000);
  CHECK_BLAS(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
  CHECK_BLAS(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
  gemm_of_letters(handle);
  gemm_ex<float, float>(handle, CUDA_R_32F, CUDA_R_32F, kFloat);
  gemm_ex<__half, float>(handle, CUDA_R_16F, CUDA_R_32F, kFloat);
  gemm_ex<__half, __half>(handle, CUDA_R_16F, CUDA_R_16F, kHalf);
  gemm_ex<__nv_bfloat16, float>(handle, CUDA_R_16BF, CUDA_R_32F, kFloat);
  gemm_ex<__nv_bfloat16, __nv_bfloat16>(handle, CUDA_R_16BF, CUDA_R_16BF, kBf16);
  batches_and_device_scales(handle);
  batches_by_addresses(handle);
  wide_sizes(handle);
  matrix_and_vector(handle);
  float one = 1;
  CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, nullptr, 3, nullptr, 4, &one,
                    nullptr, 4) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK_BLAS(cublasDestroy(handle));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

// A stream's capture takes the product; each launch of the graph does it.
void captured() {
  cublasHandle_t handle;
  cudaStream_t stream;
  CHECK_BLAS(cublasCreate(&handle));
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_BLAS(cublasSetStream(handle, stream));
  const float host[] = {3, 5};
  float *device, one = 1;
  CHECK_BLAS(cublasSetWorkspace(handle, nullptr, 0));
  CHECK_CUDA(cudaMalloc(&device, 3 * sizeof(float)));
  CHECK_BLAS(cublasSetVector(2, sizeof(float), host, 1, device, 1));
  CHECK_CUDA(cudaMemset(device + 2, 0, sizeof(float)));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK_BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, device, 1, device + 1, 1,
                         &one, device + 2, 1));
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  one = 100;  // scales of the host are taken when the call is made
  for (int i = 0; i < 3; ++i) CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  float result = 0;
  CHECK_BLAS(cublasGetVector(1, sizeof(float), device + 2, 1, &result, 1));
  CHECK(result == 45);
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaFree(device));
  CHECK_BLAS(cublasDestroy(handle));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

// D = epilogue(A^T B), D in rows or columns, found as a program that loads the library finds it.
void check_lt(cublasLtHandle_t handle, cublasLtEpilogue_t epilogue, bool rows) {
  constexpr int kM = 16, kN = 8, kK = 32;
  Values<__half> a(kM, kK, kK, 7), b(kN, kK, kK, 8);
  Values<float> bias(1, kM, kM, 9), d(1, kM * kN, kM * kN, 10);
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a_layout, b_layout, d_layout;
  cublasLtMatmulPreference_t preference;
  CHECK_BLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t transposed = CUBLAS_OP_T;
  CHECK_BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                            sizeof transposed));
  CHECK_BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                            sizeof epilogue));
  CHECK_BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                            &bias.device, sizeof bias.device));
  CHECK_BLAS(cublasLtMatrixLayoutCreate(&a_layout, CUDA_R_16F, kK, kM, kK));
  CHECK_BLAS(cublasLtMatrixLayoutCreate(&b_layout, CUDA_R_16F, kK, kN, kK));
  CHECK_BLAS(cublasLtMatrixLayoutCreate(&d_layout, CUDA_R_32F, kM, kN, rows ? kN : kM));
  if (rows) {
    const cublasLtOrder_t order = CUBLASLT_ORDER_ROW;
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(d_layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                                sizeof order));
  }
  CHECK_BLAS(cublasLtMatmulPreferenceCreate(&preference));
  const size_t workspace = 0;
  CHECK_BLAS(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  CHECK_BLAS(cublasLtMatmulAlgoGetHeuristic(handle, product, a_layout, b_layout, d_layout, d_layout,
                                            preference, 1, &found, &count));
  CHECK(count == 1 && found.state == CUBLAS_STATUS_SUCCESS);
  const float alpha = 0.5f, beta = 0;
  CHECK_BLAS(cublasLtMatmul(handle, product, &alpha, a.device, a_layout, b.device, b_layout, &beta,
                            d.device, d_layout, d.device, d_layout, &found.algo, nullptr, 0,
                            nullptr));
  const std::vector<float> result = d.result(1, kM * kN, kM * kN);
  for (int row = 0; row < kM; ++row)
    for (int column = 0; column < kN; ++column) {
      double value = 0;
      for (int p = 0; p < kK; ++p)
        value += number(a.host[row * kK + p]) * number(b.host[column * kK + p]);
      value *= alpha;
      if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) value += bias.host[row];
      if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) value = value < 0 ? 0 : value;
      CHECK(std::fabs(result[rows ? row * kN + column : column * kM + row] - value) < 1e-4);
    }
  CHECK_BLAS(cublasLtMatmulPreferenceDestroy(preference));
  CHECK_BLAS(cublasLtMatrixLayoutDestroy(d_layout));
  CHECK_BLAS(cublasLtMatrixLayoutDestroy(b_layout));
  CHECK_BLAS(cublasLtMatrixLayoutDestroy(a_layout));
  CHECK_BLAS(cublasLtMatmulDescDestroy(product));
}

void lt() {
  cublasLtHandle_t handle;
  CHECK_BLAS(cublasLtCreate(&handle));
  for (const bool rows : {false, true})
    for (const auto epilogue : {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU})
      check_lt(handle, epilogue, rows);
  for (const auto epilogue : {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS})
    check_lt(handle, epilogue, false);
  CHECK_BLAS(cublasLtDestroy(handle));
  void* library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  CHECK(library != nullptr && dlsym(library, "cublasLtMatmul") != nullptr);
}

// One wrong product; what the program sees after it is not looked at.
void wrong(const char* part) {
  cublasHandle_t handle;
  CHECK_BLAS(cublasCreate(&handle));
  float* device;
  CHECK_CUDA(cudaMalloc(&device, 3 * 16 * sizeof(float)));
  CHECK_CUDA(cudaMemset(device, 0, 3 * 16 * sizeof(float)));
  float one = 1, host[16] = {};
  const float* a = device;
  float* c = device + 32;
  int n = 4;
  if (std::strcmp(part, "unwritten") == 0) {
    float* fresh;
    CHECK_CUDA(cudaMalloc(&fresh, 16 * sizeof(float)));
    CHECK_CUDA(cudaMemset(fresh, 0, 10 * sizeof(float)));
    a = fresh;
  }
  if (std::strcmp(part, "host") == 0) a = host;
  if (std::strcmp(part, "outside") == 0) n = 5;
  if (std::strcmp(part, "other_call") == 0) {
    CHECK(cublasSaxpy(handle, 4, &one, device, 1, device + 16, 1) == CUBLAS_STATUS_NOT_SUPPORTED);
    return;
  }
  if (std::strcmp(part, "addresses_of_host") == 0) {  // the array must be the GPU's, too
    const float* as[] = {device};
    float* cs[] = {device};
    cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, as, 4, as, 4, &one, cs, 4,
                       1);
    CHECK(cudaDeviceSynchronize() != cudaSuccess);
    return;
  }
  if (std::strcmp(part, "streams") == 0) {
    cudaStream_t first, second;
    CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK_CUDA(cudaDeviceSynchronize());
    for (cudaStream_t stream : {first, second}) {
      CHECK_BLAS(cublasSetStream(handle, stream));
      CHECK_BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, device, 4,
                             device + 16, 4, &one, c, 4));
    }
    return;
  }
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, n, 4, &one, a, 4, device + 16, 4, &one, c, 4);
  cudaDeviceSynchronize();
}

}  // namespace

int main(int argc, char** argv) {
  const char* part = argc == 2 ? argv[1] : "";
  if (std::strcmp(part, "products") == 0)
    products();
  else if (std::strcmp(part, "captured") == 0)
    captured();
  else if (std::strcmp(part, "lt") == 0)
    lt();
  else if (std::strcmp(part, "factors") == 0)
    failed += factors();
  else if (std::strcmp(part, "products_of_host") == 0)
    failed += products_of_host();
  else
    wrong(part);
  return failed == 0 ? 0 : 3;
}
