// How long a call takes beside busy neighbours: zero, one and two loops that take a core each, one
// to all threads, and the thread count that the library chooses. Needs nothing but itself.
// Calls of all thread counts take turns, so that a slow moment hurts all of them alike.
// Exit codes: 0 measured; 1 an error, or with --strict an unmet bar; 2 wrong arguments.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/cpu/gemm_case.hpp"
#include "bench/cpu/operands.hpp"

namespace {

using dualgemm::Expected;
using dualgemm::Status;
using namespace dualgemm::bench;
using Clock = std::chrono::steady_clock;

constexpr double kLargestRatio = 1.5;  // our choice against the best thread count, medians
constexpr double kLargestTail = 2.0;   // p99 against the median of an idle machine

struct Shape {
  int64_t m = 0, n = 0, k = 0;
};

struct Arguments {
  std::vector<std::string> shapes{"4x1024x1024", "1x4096x7168", "16x4096x7168", "256x2048x2048"};
  std::vector<int> busy{0, 1, 2};
  int threads = 0;
  int calls = 300;
  double gap_ms = 0.0;
  bool pin = false, prepared = false, strict = false;
};

// Processes that do nothing else than be busy; they end with this object, and with this process.
class BusyLoops {
 public:
  BusyLoops(int count, bool pin) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pin) pin_to(i);
        for (std::atomic<uint64_t> spins{0};;) spins.fetch_add(1, std::memory_order_relaxed);
      }
      if (child > 0) children_.push_back(child);
    }
    // They are spread over the cores before anything is timed.
    if (count > 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  ~BusyLoops() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  BusyLoops(const BusyLoops&) = delete;
  BusyLoops& operator=(const BusyLoops&) = delete;
  int count() const { return static_cast<int>(children_.size()); }

 private:
  static void pin_to(int index) {
    cpu_set_t mine, one;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return;
    int left = index % std::max(CPU_COUNT(&mine), 1);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &mine) || left-- > 0) continue;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
  }

  std::vector<pid_t> children_;
};

struct Candidate {
  int asked = 0;  // threads; 0: the library's choice
  std::shared_ptr<GemmCase> gemm;
  std::vector<double> milliseconds;

  double percentile(double share) const {
    const auto at = static_cast<size_t>(share * static_cast<double>(milliseconds.size() - 1) + 0.5);
    return milliseconds.at(at);
  }
  std::string name() const {
    return asked == 0 ? fmt::format("default ({})", gemm->plan().threads) : std::to_string(asked);
  }
};

Expected<Shape> parse_shape(const std::string& text) {
  Shape shape;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%ldx%ldx%ld%c", &shape.m, &shape.n, &shape.k, &rest) == 3 &&
      shape.m > 0 && shape.n > 0 && shape.k > 0 && shape.k % 16 == 0)
    return shape;
  return Status::invalid("--shape", text, "must be MxNxK, K a multiple of 16");
}

// 1, 2, 4, ... and all: what users try.
std::vector<int> thread_counts(int all) {
  std::vector<int> counts{0};
  for (int threads = 1; threads < all; threads *= 2) counts.push_back(threads);
  counts.push_back(all);
  return counts;
}

Status measure(std::vector<Candidate>& candidates, const Arguments& arguments) {
  for (int call = -3; call < arguments.calls; ++call) {  // three rounds to warm up
    for (Candidate& candidate : candidates) {
      if (arguments.gap_ms > 0)
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(arguments.gap_ms));
      const auto begin = Clock::now();
      DUALGEMM_TRY(candidate.gemm->run());
      const std::chrono::duration<double, std::milli> elapsed = Clock::now() - begin;
      if (call >= 0) candidate.milliseconds.push_back(elapsed.count());
    }
  }
  for (Candidate& candidate : candidates)
    std::sort(candidate.milliseconds.begin(), candidate.milliseconds.end());
  return {};
}

// One table row a thread count; whether the bars are met.
bool print_table(const std::string& shape, int busy, const std::vector<Candidate>& candidates) {
  fmt::print("\n### {}, {} busy loop{} beside it\n\n", shape, busy, busy == 1 ? "" : "s");
  fmt::print("| threads | p50 ms | p90 ms | p99 ms | p99 / p50 |\n|---|---|---|---|---|\n");
  double best = candidates.front().percentile(0.5);
  for (const Candidate& c : candidates) {
    const double median = c.percentile(0.5), last = c.percentile(0.99);
    if (c.asked != 0) best = std::min(best, median);
    fmt::print("| {} | {:.4f} | {:.4f} | {:.4f} | {:.2f} |\n", c.name(), median, c.percentile(0.9),
               last, last / median);
  }
  const Candidate& ours = candidates.front();
  const double ratio = ours.percentile(0.5) / best;
  const double tail = ours.percentile(0.99) / ours.percentile(0.5);
  const bool ratio_met = ratio <= kLargestRatio, tail_met = busy > 0 || tail <= kLargestTail;
  fmt::print("\ndefault / best median: {:.2f} (bar {:.1f}, {})", ratio, kLargestRatio,
             ratio_met ? "met" : "NOT met");
  if (busy == 0)
    fmt::print("; p99 / median: {:.2f} (bar {:.1f}, {})", tail, kLargestTail,
               tail_met ? "met" : "NOT met");
  fmt::print("\n");
  std::fflush(stdout);
  return ratio_met && tail_met;
}

int fail(const Status& status, int code) {
  fmt::print(stderr, "bench_busy: {}\n", status.message());
  return code;
}

int run_benchmark(const Arguments& arguments) {
  const int cores = dualgemm::device_caps().cores;
  const int all = arguments.threads > 0 ? arguments.threads : cores;
  fmt::print(
      "## Calls beside busy neighbours\n\n{}, {} usable cores, {} calls of each, {} ms apart, "
      "loops {}\n",
      dualgemm::device_caps().name, cores, arguments.calls, arguments.gap_ms,
      arguments.pin ? "pinned" : "not pinned");
  bool met = true;
  for (const std::string& text : arguments.shapes) {
    const Expected<Shape> shape = parse_shape(text);
    if (!shape) return fail(shape.status(), 2);
    Operands operands(shape->n, shape->k, shape->m, 1);
    for (const int busy : arguments.busy) {
      std::vector<Candidate> candidates;
      for (const int threads : thread_counts(all)) {
        const GemmSpec spec{.name = text, .m = shape->m, .prepared = arguments.prepared};
        Expected<std::shared_ptr<GemmCase>> gemm = GemmCase::make(operands, spec, threads);
        if (!gemm) return fail(gemm.status(), 1);
        candidates.push_back({threads, *std::move(gemm), {}});
      }
      const BusyLoops loops(busy, arguments.pin);
      if (loops.count() != busy)
        return fail(Status::invalid("--busy", std::to_string(busy), "no process could be started"),
                    1);
      const Status status = measure(candidates, arguments);
      if (!status.ok()) return fail(status, 1);
      if (!print_table(text, busy, candidates)) met = false;
    }
  }
  return arguments.strict && !met ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures calls on the CPU beside busy neighbours");
  Arguments arguments;
  app.add_option("--shape", arguments.shapes, "MxNxK, one or more")->capture_default_str();
  app.add_option("--busy", arguments.busy, "numbers of busy loops")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--threads", arguments.threads, "the most threads to try; 0: the usable cores")
      ->check(CLI::Range(0, 1024));
  app.add_option("--calls", arguments.calls, "calls of each thread count")
      ->check(CLI::Range(10, 1000000))
      ->capture_default_str();
  app.add_option("--gap", arguments.gap_ms, "milliseconds between two calls")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_flag("--pin", arguments.pin, "each loop stays on one core");
  app.add_flag("--prepared", arguments.prepared, "prepared weights");
  app.add_flag("--strict", arguments.strict, "exit with 1 when a bar is not met");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run_benchmark(arguments);
}
