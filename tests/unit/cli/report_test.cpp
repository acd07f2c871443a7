// The parts that the binary cannot be made to show: what a failure looks like, and that the line
// which repeats it does.
#include "tools/cli/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "tools/cli/args.hpp"
#include "tools/cli/bench_report.hpp"
#include "tools/cli/check_text.hpp"
#include "tools/cli/verify_report.hpp"

namespace dualgemm::cli {
namespace {

TEST(Table, TextAlignsColumns) {
  Table table({{"name", Align::kLeft}, {"ms"}, {"note", Align::kLeft}});
  table.add_row({"a", "1.5", "x"});
  table.add_row({"longer", "12.25", "last column is not padded"});
  EXPECT_EQ(table.text(),
            "name       ms  note\n"
            "a         1.5  x\n"
            "longer  12.25  last column is not padded\n");
}

TEST(Table, MarkdownAndCsvEscape) {
  Table table({{"a|b", Align::kLeft}, {"c"}});
  table.add_row({"x|y\nz", "1,5 \"q\""});
  EXPECT_EQ(table.markdown(), "| a\\|b | c |\n|---|---:|\n| x\\|y z | 1,5 \"q\" |\n");
  EXPECT_EQ(table.csv(), "a|b,c\n\"x|y\nz\",\"1,5 \"\"q\"\"\"\n");
}

TEST(BarPicture, LongestFillsTheWidthAndNothingVanishes) {
  EXPECT_EQ(
      bar_picture(
          {{"slow", 100.0, "s"}, {"half", 50.0, "h"}, {"tiny", 0.001, "t"}, {"none", 0.0, "n"}},
          10),
      "slow |##########| s\n"
      "half |#####     | h\n"
      "tiny |#         | t\n"
      "none |          | n\n");
  EXPECT_EQ(bar_picture({}, 10), "");
}

TEST(FormatBytes, Units) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1500), "1.5 kB");
  EXPECT_EQ(format_bytes(33030144), "33.0 MB");
  EXPECT_EQ(format_bytes(int64_t{5} * 1000 * 1000 * 1000), "5.00 GB");
}

verify::CheckReport wrong_report() {
  verify::CheckReport report;
  report.compared = 2560;
  report.failed = 256;
  report.worst_share = 3.0;
  report.worst_row = 21;
  report.worst_col = 50;
  report.actual = 0.5;
  report.expected = 0.25;
  report.lowest = 0.2;
  report.highest = 0.3;
  report.map_rows = 3;
  report.map_cols = 4;
  report.map.assign(12, verify::TileState::kRight);
  report.map[7] = verify::TileState::kWrong;
  return report;
}

TEST(FailureDetails, NameTheElementAndDrawTheTiles) {
  EXPECT_EQ(verdict(wrong_report(), DataType::kF32), "WRONG: 256 of 2560 elements");
  EXPECT_EQ(failure_details(wrong_report()),
            "  worst element: d[0][21][50] (batch, row, column) in tile (1, 3)\n"
            "  got 0.5, exact 0.25, accepted 0.2 .. 0.3\n"
            "  tiles of 16x16: '.' right, 'X' wrong, ' ' not compared\n"
            "    ....\n    ...X\n    ....\n");
}

VerifyCommand parsed_verify(const std::vector<std::string>& arguments) {
  const ParseOutcome outcome = parse_arguments(arguments);
  EXPECT_TRUE(outcome.command.has_value()) << outcome.err;
  return outcome.command ? std::get<VerifyCommand>(*outcome.command) : VerifyCommand();
}

// Words of a line without quotes.
std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> result;
  size_t begin = 0;
  while (begin < line.size()) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    result.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

// The line is parsed again and must ask for the same problem, strategy and execution.
TEST(Reproduction, AsksForTheSameAgain) {
  const VerifyCommand original = parsed_verify({"verify",
                                                "--m",
                                                "17,40",
                                                "--n",
                                                "64",
                                                "--k",
                                                "128",
                                                "--l",
                                                "2",
                                                "--seed",
                                                "9",
                                                "--a-type",
                                                "bf16",
                                                "--d-type",
                                                "f32",
                                                "--scale-layout",
                                                "swizzled_128x4",
                                                "--act",
                                                "swiglu_oai",
                                                "--act-limit",
                                                "inf",
                                                "--act-alpha",
                                                "1.702",
                                                "--batch-invariant",
                                                "--isa",
                                                "scalar",
                                                "--threads",
                                                "3",
                                                "--prepared",
                                                "--samples",
                                                "77"});
  VerifyCase item;
  item.problem = original.problem.problem(40, 64, 128, 2);
  item.seed = 9;
  const std::string line = reproduction(original, item, StrategyId::kTwoPass);
  std::vector<std::string> arguments = words(line);
  ASSERT_GE(arguments.size(), 2u);
  ASSERT_EQ(arguments.front(), "dualgemm");
  arguments.erase(arguments.begin());
  const VerifyCommand again = parsed_verify(arguments);
  const std::vector<Shape> shapes = again.shapes.combinations({1, 1, 16, 1});
  ASSERT_EQ(shapes.size(), 1u) << line;
  EXPECT_EQ(again.problem.problem(shapes[0].m, shapes[0].n, shapes[0].k, shapes[0].l), item.problem)
      << line;
  EXPECT_EQ(again.strategies, std::vector<StrategyId>{StrategyId::kTwoPass});
  EXPECT_EQ(again.seed, 9u);
  EXPECT_EQ(again.samples, 77);
  EXPECT_EQ(again.execution.isa, Isa::kScalar);
  EXPECT_EQ(again.execution.threads, 3);
  EXPECT_TRUE(again.execution.prepared);
}

TEST(Reproduction, QuotesFileNames) {
  VerifyCommand command = parsed_verify({"verify", "--weights", "my layer's.safetensors",
                                         "--activations", "x.npy", "--prefix", "a.b"});
  const std::string line = reproduction(command, {}, StrategyId::kFused);
  EXPECT_NE(line.find("--weights 'my layer'\\''s.safetensors' --activations x.npy --prefix a.b"),
            std::string::npos)
      << line;
}

TEST(Reproduction, NamesTheDeviceAndTheKernel) {
  const VerifyCommand command = parsed_verify(
      {"verify", "--device", "cuda", "--m", "8", "--config", "strategy=fused,tile_m=64"});
  const std::string line = reproduction(command, {}, StrategyId::kFused);
  EXPECT_NE(line.find(" --device cuda --config strategy=fused,tile_m=64"), std::string::npos)
      << line;
}

BenchResult timed(StrategyId strategy, double seconds) {
  BenchResult result;
  result.strategy = strategy;
  result.timing.median_seconds = seconds;
  result.check = verify::CheckReport{};
  result.check->compared = 10;
  return result;
}

TEST(BenchResult, StatusSaysWhatHappened) {
  BenchResult result = timed(StrategyId::kFused, 1e-3);
  EXPECT_EQ(result.status(), "ok, bit-identical");
  result.differing = 7;
  EXPECT_EQ(result.status(), "ok, 7 elements differ in bits");
  result.sampled = true;
  EXPECT_EQ(result.status(), "ok, 10 elements");
  result.timing.disturbed = true;
  EXPECT_EQ(result.status(), "ok, 10 elements, disturbed");
  result.timing.median_seconds = 0.0;
  EXPECT_EQ(result.status(), "ok, 10 elements, no time within the budget");
  result.check = wrong_report();
  EXPECT_TRUE(result.failed());
  EXPECT_NE(result.status().find("WRONG: 256 of 2560"), std::string::npos);

  BenchResult fp8 = timed(StrategyId::kFp8, 1e-3);
  fp8.check.reset();
  EXPECT_TRUE(fp8.failed());  // nothing was compared
  fp8.fp8 = verify::OutputDifference();
  fp8.fp8->elements = 4096;
  fp8.fp8->rel_l2 = 0.03;
  EXPECT_FALSE(fp8.failed());
  EXPECT_EQ(fp8.status(), "inexact, rel L2 error 3.00e-02");
  fp8.fp8->rel_l2 = 0.5;
  EXPECT_TRUE(fp8.failed());

  BenchResult skipped;
  skipped.error = Status::unsupported("d", "e2m1", "not here");
  EXPECT_FALSE(skipped.failed());
  EXPECT_EQ(skipped.status(), "skipped: d: e2m1; not here");
  skipped.error = Status::invalid("d", "e2m1", "bug");
  EXPECT_TRUE(skipped.failed());
}

// Two shapes: two_pass 8 and 2 ms, fused 2 and 2 ms: means 4 and 2 ms, speed-ups 4 and 1, mean 2.
TEST(BenchReport, RankingIsTheGeometricMeanOverShapes) {
  BenchReport report;
  for (const double two_pass_ms : {8.0, 2.0}) {
    BenchShape shape;
    shape.problem.m = shape.problem.n = shape.problem.k = 16;
    shape.results = {timed(StrategyId::kFused, 2e-3),
                     timed(StrategyId::kTwoPass, two_pass_ms * 1e-3)};
    report.shapes.push_back(shape);
  }
  const std::string text = bench_text(report);
  EXPECT_NE(
      text.find("fused    |#########################                         | 2.000 ms  2.00x\n"
                "two_pass |##################################################| 4.000 ms  1.00x\n"),
      std::string::npos)
      << text;
  // A strategy without a time for each shape is not ranked.
  report.shapes[1].results[1].timing.median_seconds = 0.0;
  EXPECT_EQ(bench_text(report).find("two_pass |"), std::string::npos);
}

TEST(BenchReport, OneStrategyWithBothKindsOfWeightsIsTwoContestants) {
  BenchReport report;
  report.on_gpu = true;
  BenchShape shape;
  shape.problem.m = shape.problem.n = shape.problem.k = 16;
  shape.results = {timed(StrategyId::kFused, 1e-5), timed(StrategyId::kFused, 2e-5),
                   timed(StrategyId::kCached, 4e-5)};
  shape.results[0].prepared = shape.results[0].also_as_they_lie = true;
  shape.results[2].prepared = true;
  report.shapes = {shape, shape};
  EXPECT_NE(
      bench_text(report).find("fused prepared |#############                                     "
                              "| 10.00 us\n"
                              "fused          |#########################                         "
                              "| 20.00 us\n"
                              "cached         |##################################################"
                              "| 40.00 us\n"),
      std::string::npos)
      << bench_text(report);
  const auto json = nlohmann::json::parse(bench_json(report));
  ASSERT_EQ(json["ranking"].size(), 3u);
  EXPECT_EQ(json["ranking"][0]["strategy"], "fused");
  EXPECT_EQ(json["ranking"][0]["prepared"], true);
  EXPECT_EQ(json["ranking"][1]["prepared"], false);
  EXPECT_EQ(json["shapes"][0]["results"][0]["prepared"], true);
  EXPECT_NE(bench_csv(report).find(",fused prepared,"), std::string::npos);
}

}  // namespace
}  // namespace dualgemm::cli
