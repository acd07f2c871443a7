#include "bench/cuda/pointer_checks.hpp"

#include <array>
#include <chrono>

#include "bench/cuda/stopwatch.hpp"
#include "cuda/runtime/pointers.hpp"

namespace dualgemm::bench {

Expected<double> microseconds_of_pointer_checks() {
  constexpr int kCalls = 20000;
  constexpr int64_t kBytes = 4096;
  auto stopwatch = Stopwatch::make();
  if (!stopwatch) return stopwatch.status();
  std::array<cuda::DeviceMemory, 8> arrays;
  std::array<cuda::NamedPointer, 8> pointers{};
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto array = cuda::DeviceMemory::allocate(kBytes, "array");
    if (!array) return array.status();
    arrays[i] = *std::move(array);
    pointers[i] = {"array", arrays[i].data()};
  }
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < kCalls; ++call) {
    DUALGEMM_TRY(cuda::check_pointers(pointers));
    DUALGEMM_TRY(cuda::check_stream(stopwatch->stream()));
  }
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / kCalls;
}

}  // namespace dualgemm::bench
