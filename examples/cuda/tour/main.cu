// Runs the steps of the tour on one random problem, checks each element of each D, and, with
// --time, prints what each step takes. Usage: tour [--time] [m n k]; default 40 128 512.
// Exit status: 0 all right, 1 a wrong element or a failed call, 2 bad arguments, 77 no GPU for it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "tour/problem.cuh"

namespace {

struct Step {
  const char* name;
  void (*run)(const tour::Problem&, cudaStream_t);
};
constexpr Step kSteps[] = {{"1 two_pass", tour::two_pass}, {"2 one_pass", tour::one_pass},
                           {"3 tiled", tour::tiled},       {"4 tensor_cores", tour::tensor_cores},
                           {"5 pipeline", tour::pipeline}, {"6 hopper", tour::hopper}};

// A matrix of weights: its codes, its scales, and their values.
struct Weights {
  std::vector<uint8_t> codes, scales;
  std::vector<double> values;
};

std::vector<void*> allocations;

void* allocate(size_t bytes) {
  void* device = nullptr;
  cudaMalloc(&device, bytes);
  allocations.push_back(device);
  return device;
}

template <class T>
T* to_device(const std::vector<T>& host) {
  T* const device = static_cast<T*>(allocate(host.size() * sizeof(T)));
  cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

Weights random_weights(size_t n, size_t k, std::mt19937& random) {
  constexpr double kE2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  Weights weights{std::vector<uint8_t>(n * k / 2), std::vector<uint8_t>(n * k / 16), {}};
  for (auto& byte : weights.codes) byte = random();
  for (auto& byte : weights.scales) byte = 0x20 + random() % 0x28;  // 2^-3 ... 14
  weights.values.resize(n * k);
  for (size_t i = 0; i < n * k; ++i) {
    const int code = weights.codes[i / 2] >> i % 2 * 4, scale = weights.scales[i / 16];
    weights.values[i] =
        (code & 8 ? -1 : 1) * kE2m1[code & 7] * std::ldexp(1 + (scale & 7) / 8.0, (scale >> 3) - 7);
  }
  return weights;
}

struct Expected {
  double d, tolerance;
};

// D in double precision, and how far FP32 sums of k terms, an FP32 activation and a rounding to
// fp16 may be away from it: the sum of k terms errs by at most k * 2^-23 of their magnitudes' sum
// (a tensor core may truncate), and SiLU's slope is below 1.1.
Expected expected_at(const std::vector<__half>& a, const Weights& gate, const Weights& up,
                     const tour::Problem& p, size_t row, size_t col) {
  double g = 0, u = 0, g_size = 0, u_size = 0;
  for (size_t k = 0; k < p.k; ++k) {
    const double x = __half2float(a[row * p.k + k]);
    const double in_g = x * gate.values[col * p.k + k], in_u = x * up.values[col * p.k + k];
    g += in_g, g_size += std::abs(in_g), u += in_u, u_size += std::abs(in_u);
  }
  g *= p.alpha_gate, u *= p.alpha_up;
  const double of_sum = p.k * 0x1p-23, act = g / (1 + std::exp(-g));
  const double g_off = of_sum * p.alpha_gate * g_size, u_off = of_sum * p.alpha_up * u_size;
  const double act_off = 1.1 * g_off + 0x1p-20 * std::abs(act);
  const double off = act_off * (std::abs(u) + u_off) + std::abs(act) * u_off;
  return {act * u, off + 0x1p-11 * (std::abs(act * u) + off) + 0x1p-25};
}

// Elements of D out of their bounds; the first is printed. Few rows and columns of a large D.
int count_wrong(const std::vector<__half>& d, const std::vector<__half>& a, const Weights& gate,
                const Weights& up, const tour::Problem& p) {
  const size_t row_step = p.m > 64 ? p.m / 37 : 1, col_step = p.n > 256 ? p.n / 61 : 1;
  int wrong = 0;
  for (size_t row = 0; row < p.m; row += row_step) {
    for (size_t col = 0; col < p.n; col += col_step) {
      const Expected expected = expected_at(a, gate, up, p, row, col);
      const double got = __half2float(d[row * p.n + col]);
      if (std::abs(got - expected.d) <= expected.tolerance) continue;
      if (wrong++ == 0)
        std::printf("D(%zu, %zu) is %g; expected %g within %g\n", row, col, got, expected.d,
                    expected.tolerance);
    }
  }
  return wrong;
}

// Median microseconds of a step; each run reads another copy of the weights, so that the L2 cache
// does not have them.
float median_us(const Step& step, const std::vector<tour::Problem>& copies) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = 0; i < 33; ++i) {
    cudaEventRecord(begin);
    step.run(copies[i % copies.size()], nullptr);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 3) times.push_back(1000 * ms);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const bool timed = argc > 1 && std::strcmp(argv[1], "--time") == 0;
  const char* const* sizes = argv + 1 + timed;
  uint32_t extents[3] = {40, 128, 512};
  const int given = argc - 1 - timed;
  for (int i = 0; i < given && given == 3; ++i) extents[i] = std::strtoul(sizes[i], nullptr, 10);
  const auto [m, n, k] = extents;
  if ((given != 0 && given != 3) || m == 0 || n == 0 || k == 0 || n % 64 != 0 || k % 256 != 0) {
    std::fprintf(stderr, "usage: tour [--time] [m n k]; n a multiple of 64, k of 256\n");
    return 2;
  }
  cudaDeviceProp device{};
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major != 9) {
    std::printf("no Hopper GPU; without one: ptxsim exec --device h100 -- tour\n");
    return 77;
  }

  std::mt19937 random(2026);
  std::vector<__half> a(size_t{m} * k), d(size_t{m} * n);
  for (auto& x : a) x = __float2half(std::uniform_real_distribution<float>(-1, 1)(random));
  const Weights gate = random_weights(n, k, random), up = random_weights(n, k, random);
  tour::Problem p{m,       n,       k,     to_device(a), nullptr,      nullptr,
                  nullptr, nullptr, 0.01f, 0.02f,        to_device(d), nullptr};
  p.workspace = allocate(workspace_bytes(p));
  // As many copies of the weights as are larger than an L2 cache of 50 MB, where time is measured.
  std::vector<tour::Problem> copies(timed ? 1 + 150'000'000 / (gate.codes.size() * 9 / 4) : 1, p);
  for (auto& copy : copies) {
    copy.gate = to_device(gate.codes), copy.up = to_device(up.codes);
    copy.gate_scales = to_device(gate.scales), copy.up_scales = to_device(up.scales);
  }

  int failed = 0;
  for (const Step& step : kSteps) {
    cudaMemset(p.d, 0xFF, d.size() * sizeof(__half));  // NaN: an element that is left shows
    step.run(copies[0], nullptr);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
      error = cudaMemcpy(d.data(), p.d, d.size() * sizeof(__half), cudaMemcpyDeviceToHost);
    const int wrong = error == cudaSuccess ? count_wrong(d, a, gate, up, p) : 1;
    failed += wrong != 0;
    std::printf("%-16s %s", step.name,
                error != cudaSuccess ? cudaGetErrorString(error)
                : wrong              ? "WRONG"
                                     : "right");
    if (timed && wrong == 0) std::printf("  %9.1f us", median_us(step, copies));
    std::printf("\n");
  }
  for (void* const device : allocations) cudaFree(device);
  return failed == 0 ? 0 : 1;
}
