#include "bench/cuda/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

namespace dualgemm::bench {
namespace {

constexpr int64_t kMaxM = 16384, kMaxExtent = 65536;
// cuBLASLt's two GEMMs write halves of one buffer, which its algorithms expect at multiples of 256
// bytes whatever m is; its E4M3 ones want k in multiples of 16.
constexpr int64_t kMultipleOfN = 128, kMultipleOfK = 64;

struct Texts {
  std::string shapes = "4096x7168,3072x7168,3072x4096,14336x4096";
  std::string m = "1,8,16,32,64,128,256,512,1024,2048,4096";
  std::string strategies;
};

void declare(CLI::App& app, Arguments& arguments, Texts& texts) {
  app.add_option("--shapes", texts.shapes, "NxK,...")->capture_default_str();
  app.add_option("--m", texts.m, "rows of A, ...")->capture_default_str();
  app.add_option("--strategies", texts.strategies, "also: two_pass,cached,graph,streams,fp8");
  app.add_option("--seconds", arguments.limits.seconds, "to measure a point for")
      ->capture_default_str();
  app.add_option("--json", arguments.json, "also write all numbers to this file");
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Expected<int64_t> number_of(const char* argument, const std::string& text, int64_t multiple,
                            int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most &&
      value % multiple == 0)
    return value;
  const std::string which = multiple == 1 ? "" : fmt::format("a multiple of {}, ", multiple);
  return Status::invalid(argument, text.empty() ? "nothing" : text,
                         fmt::format("must be {}1 to {}", which, most));
}

Status read_shapes(const std::string& text, Arguments& arguments) {
  arguments.shapes.clear();
  for (const std::string& one : parts_of(text, ',')) {
    const std::vector<std::string> extents = parts_of(one, 'x');
    if (extents.size() != 2) return Status::invalid("--shapes", one, "must be like 4096x7168");
    const auto n = number_of("--shapes: n", extents[0], kMultipleOfN, kMaxExtent);
    if (!n) return n.status();
    const auto k = number_of("--shapes: k", extents[1], kMultipleOfK, kMaxExtent);
    if (!k) return k.status();
    arguments.shapes.emplace_back(*n, *k);
  }
  return {};
}

Status read_strategies(const std::string& text, Arguments& arguments) {
  if (text.empty()) return {};
  for (const std::string& one : parts_of(text, ',')) {
    const auto strategy = parse_strategy(one);
    if (!strategy) return strategy.status();
    if (*strategy == StrategyId::kAuto || *strategy == StrategyId::kReference ||
        *strategy == StrategyId::kFused)
      return Status::invalid("--strategies", one, "must be one of the others; fused always runs");
    arguments.strategies.push_back(*strategy);
  }
  return {};
}

}  // namespace

std::string help_text() {
  CLI::App app{
      "Times the fused kernel on this GPU with weights cold in L2, beside cuBLASLt in fp16 and "
      "E4M3 on decoded weights and a plain read of the packed ones.",
      "bench_cuda"};
  Arguments arguments;
  Texts texts;
  declare(app, arguments, texts);
  return app.help();
}

Expected<Arguments> parse_arguments(int argc, const char* const* argv) {
  CLI::App app;
  Arguments arguments;
  Texts texts;
  declare(app, arguments, texts);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    arguments.help = true;
    return arguments;
  } catch (const CLI::ParseError& error) {
    return Status::invalid("arguments", error.what(), "see --help");
  }
  DUALGEMM_TRY(read_shapes(texts.shapes, arguments));
  arguments.m.clear();
  for (const std::string& one : parts_of(texts.m, ',')) {
    const auto m = number_of("--m", one, 1, kMaxM);
    if (!m) return m.status();
    arguments.m.push_back(*m);
  }
  DUALGEMM_TRY(read_strategies(texts.strategies, arguments));
  if (!(arguments.limits.seconds > 0 && arguments.limits.seconds <= 60))
    return Status::invalid("--seconds", fmt::format("{}", arguments.limits.seconds),
                           "must be above 0, at most 60");
  return arguments;
}

}  // namespace dualgemm::bench
