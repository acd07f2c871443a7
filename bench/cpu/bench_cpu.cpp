// The CPU benchmark behind `make bench`: the speed table, with bars, against the peaks and the
// OpenBLAS baseline measured in the same run. Tables on stdout, progress on stderr.
// Exit codes: 0 measured; 1 an error, or with --strict an unmet bar; 2 wrong arguments.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cpu/report.hpp"
#include "bench/cpu/suite.hpp"
#include "tools/measure/rounds.hpp"

namespace {

using dualgemm::DataType;
using dualgemm::Status;
using namespace dualgemm::bench;
namespace measure = dualgemm::measure;

struct Arguments {
  SuiteOptions suite;
  measure::RoundOptions rounds;
  std::string json_path, markdown_path;
  bool strict = false, processor_time = false;
};

// Seconds that this process has used of any processor.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Enum>
std::map<std::string, Enum> by_name(const std::vector<Enum>& values) {
  std::map<std::string, Enum> names;
  for (const Enum value : values) names.emplace(dualgemm::name_of(value), value);
  return names;
}

void declare(CLI::App& app, Arguments& arguments) {
  std::vector<std::string> parts(std::begin(kParts), std::end(kParts));
  parts.emplace_back(kRowsPart);
  app.add_option("--threads", arguments.suite.threads, "threads; 0 = all cores of this process")
      ->check(CLI::Range(0, 4096));
  app.add_option("-n,--n", arguments.suite.n, "rows of Gate and Up")
      ->check(CLI::Range(16, 1 << 20))
      ->capture_default_str();
  app.add_option("-k,--k", arguments.suite.k, "columns of A, Gate and Up; a multiple of 16")
      ->check(CLI::Range(16, 1 << 20))
      ->capture_default_str();
  app.add_option("--only", arguments.suite.parts,
                 "parts to run: speed isa types strategies quantizer; by name alone: rows, every M "
                 "beside its neighbour")
      ->check(CLI::IsMember(parts));
  app.add_option("--a-type", arguments.suite.rows_types, "rows: of A; e2m1 bf16 f16")
      ->transform(CLI::CheckedTransformer(
          by_name<DataType>({DataType::kE2M1, DataType::kBF16, DataType::kF16})));
  app.add_option("--isa", arguments.suite.rows_isas, "rows: instruction sets; none: all")
      ->transform(CLI::CheckedTransformer(by_name(dualgemm::device_caps().isas)));
  app.add_flag("--processor-time", arguments.processor_time,
               "measure seconds of the processor, which neighbours do not lengthen; one thread");
  app.add_option("--budget", arguments.rounds.budget_seconds, "seconds of measuring, at the most")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  app.add_option("--samples", arguments.rounds.min_rounds,
                 "rounds of every case, at least, also where the budget is spent")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--json", arguments.json_path, "also write the numbers to this file");
  app.add_option("--markdown", arguments.markdown_path, "also write the tables to this file");
  app.add_flag("--strict", arguments.strict, "exit with 1 when a bar is not met");
}

int fail(const std::string& message) {
  fmt::print(stderr, "bench_cpu: {}\n", message);
  return 1;
}

bool write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return !file.fail();
}

int run_benchmark(const Arguments& arguments) {
  dualgemm::Expected<std::unique_ptr<Suite>> suite = Suite::make(arguments.suite);
  if (!suite) return fail(suite.status().message());
  const std::vector<SuiteCase>& cases = (*suite)->cases();
  if (cases.empty()) return fail("nothing to measure on this machine");

  Status failure;  // the first one; a case that fails once is not measured to the end
  std::vector<measure::RoundCase> round_cases;
  for (const SuiteCase& item : cases) {
    round_cases.push_back({item.name, [&failure, &item] {
                             const Status status = item.run();
                             if (!status.ok() && failure.ok()) failure = status;
                           }});
  }
  const char* const type = std::getenv("TERM");
  const bool terminal = isatty(STDERR_FILENO) == 1 && type != nullptr && *type != '\0' &&
                        std::string_view(type) != "dumb";
  const auto progress = [&](const std::string& name, int round) {
    if (terminal) fmt::print(stderr, "\r\033[Kround {}: {} ", round, name);
  };
  measure::RoundWorld world = measure::system_world();
  if (arguments.processor_time) world.now = processor_seconds;
  const measure::RoundReport measured =
      measure::measure_in_rounds(round_cases, arguments.rounds, world, progress);
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!failure.ok()) return fail(failure.message());

  const Report report(**suite, measured);
  const std::string markdown = report.markdown();
  fmt::print("{}", markdown);
  const bool markdown_written = write_file(arguments.markdown_path, markdown);
  const bool json_written = write_file(arguments.json_path, report.json().dump(2) + "\n");
  if (!markdown_written) return fail("cannot write " + arguments.markdown_path);
  if (!json_written) return fail("cannot write " + arguments.json_path);
  for (const Bar& bar : report.bars()) {
    if (arguments.strict && bar.verdict() != Verdict::kMet)
      return fail(std::string(bar.verdict() == Verdict::kNotMet ? "not met: " : "not judged: ") +
                  bar.what);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures the CPU backend against this machine's peaks and OpenBLAS");
  Arguments arguments;
  declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (arguments.suite.k % 16 != 0) {
    fmt::print(stderr, "bench_cpu: --k: {}; must be a multiple of 16\n", arguments.suite.k);
    return 2;
  }
  if (arguments.processor_time && arguments.suite.threads != 1) {
    fmt::print(stderr, "bench_cpu: --processor-time: threads {}; must be 1\n",
               arguments.suite.threads);
    return 2;
  }
  return run_benchmark(arguments);
}
