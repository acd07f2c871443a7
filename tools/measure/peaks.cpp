#include "tools/measure/peaks.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "core/team.hpp"
#include "tools/measure/median.hpp"
#include "tools/measure/parallel_for.hpp"
#include "tools/measure/peaks_loops.hpp"

namespace dualgemm::measure {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// work(thread) on each thread at the same time: a unit lasts longer than any of them needs to come.
template <class Work>
void on_all(int threads, const Work& work) {
  core::Team(threads).run(threads, [&](int64_t thread, int) { work(static_cast<int>(thread)); });
}

// Iterations that take about `seconds` on one thread.
int64_t calibrate(const ArithmeticLoop& loop, double seconds) {
  constexpr double kMeasurable = 1e-3;  // long against the clock's resolution and an interrupt
  int64_t iterations = 1024;
  for (;;) {
    const double taken = seconds_of([&] { loop.run(iterations); });
    if (taken >= kMeasurable) {
      return std::max<int64_t>(1, std::llround(static_cast<double>(iterations) * seconds / taken));
    }
    iterations *= 2;
  }
}

// Anonymous pages, touched by the threads that will read them. data() is null when the machine
// cannot spare them.
class ReadBuffer {
 public:
  ReadBuffer(int64_t bytes, int threads) : threads_(threads) {
    constexpr int64_t kSmallest = int64_t{256} << 20;  // below this an L3 would help
    const int64_t spare = int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 2;
    bytes = std::min(bytes, spare);
    if (bytes < kSmallest) return;
    slice_ = bytes / threads / kReadGranule * kReadGranule;
    void* memory =
        mmap(nullptr, mapped(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    data_ = static_cast<char*>(memory);
    madvise(data_, mapped(),
            MADV_HUGEPAGE);  // fewer TLB misses; small pages do as well where this is refused
    on_all(threads,
           [this](int thread) { std::memset(slice(thread), 0x5A, static_cast<size_t>(slice_)); });
  }
  ~ReadBuffer() {
    if (data_ != nullptr) munmap(data_, mapped());
  }
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;

  char* data() const { return data_; }
  char* slice(int thread) const { return data_ + thread * slice_; }
  int64_t slice_bytes() const { return slice_; }
  int64_t bytes() const { return slice_ * threads_; }

 private:
  size_t mapped() const { return static_cast<size_t>(bytes()); }

  int threads_;
  int64_t slice_ = 0;
  char* data_ = nullptr;
};

}  // namespace

std::vector<PeakCase> peak_cases(int threads, const PeakOptions& options) {
  threads = threads_or_default(threads);
  std::vector<PeakCase> cases;
  for (const ArithmeticLoop& loop : supported_arithmetic_loops()) {
    const int64_t iterations = calibrate(loop, options.milliseconds * 1e-3);
    const double operations = loop.ops_per_iteration * static_cast<double>(iterations) * threads;
    cases.push_back({loop.name, loop.what, loop.field, operations * 1e-9,
                     [run = loop.run, iterations, threads] {
                       on_all(threads, [&](int) { run(iterations); });
                     }});
  }
  if (options.read_bytes <= 0 || supported_read_loops().empty()) return cases;
  const auto buffer = std::make_shared<const ReadBuffer>(options.read_bytes, threads);
  if (buffer->data() == nullptr) return cases;
  for (const ReadLoop& loop : supported_read_loops()) {
    cases.push_back(
        {loop.name, loop.what, &Peaks::read_gbps, static_cast<double>(buffer->bytes()) * 1e-9,
         [run = loop.run, buffer, threads] {
           on_all(threads, [&](int thread) { run(buffer->slice(thread), buffer->slice_bytes()); });
         }});
  }
  return cases;
}

Peaks peaks_of(std::span<const PeakCase> cases, std::span<const CaseTimes> timings, int threads) {
  Peaks peaks{.threads = threads_or_default(threads)};
  for (size_t i = 0; i < cases.size() && i < timings.size(); ++i) {
    if (timings[i].median_seconds <= 0) continue;
    double& peak = peaks.*cases[i].field;
    peak = std::max(peak, cases[i].giga_per_run / timings[i].median_seconds);
  }
  return peaks;
}

Peaks measure_peaks(int threads) { return measure_peaks(threads, PeakOptions{}); }

Peaks measure_peaks(int threads, const PeakOptions& options) {
  Peaks peaks{.threads = threads_or_default(threads)};
  for (const PeakCase& peak : peak_cases(peaks.threads, options)) {
    peak.run();  // threads started, clock risen
    std::vector<double> seconds(static_cast<size_t>(std::max(1, options.repetitions)));
    for (double& sample : seconds) sample = seconds_of(peak.run);
    peaks.*peak.field = std::max(peaks.*peak.field, peak.giga_per_run / median(std::move(seconds)));
  }
  return peaks;
}

}  // namespace dualgemm::measure
