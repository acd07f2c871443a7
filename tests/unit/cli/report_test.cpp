// The parts that the binary cannot be made to show: what a failure looks like, and that the line
// which repeats it does.
#include "tools/cli/print/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <variant>

#include "tools/cli/commands/bench_limits.hpp"
#include "tools/cli/commands/ready_run.hpp"
#include "tools/cli/parse/args.hpp"
#include "tools/cli/print/bench_ranking.hpp"
#include "tools/cli/print/bench_report.hpp"
#include "tools/cli/print/check_text.hpp"
#include "tools/cli/print/verify_report.hpp"

namespace dualgemm::cli {
namespace {

constexpr Style kWide{.width = 10000};

TEST(Table, TextAlignsColumns) {
  Table table({{"name", Align::kLeft}, {"ms"}, {"note", Align::kLeft}});
  table.add_row({"a", "1.5", "x"});
  table.add_row({"longer", "12.25", "last column is not padded"});
  EXPECT_EQ(table.text(kWide),
            "name       ms  note\n"
            "a         1.5  x\n"
            "longer  12.25  last column is not padded\n");
}

// Columns that do not fit stand in a further part, each with the key; the last one is wrapped.
TEST(Table, FitsTheWidth) {
  Table table({{"name", Align::kLeft}, {"milliseconds"}, {"speed"}, {"status", Align::kLeft}});
  table.add_row(
      {"fused", "1.5", "2.00x", "skipped: a long reason of some words, which does not fit"});
  EXPECT_EQ(table.text({.width = 36}),
            "name   milliseconds  speed\n"
            "fused           1.5  2.00x\n"
            "\n"
            "name   status\n"
            "fused  skipped: a long reason of\n"
            "       some words, which does not\n"
            "       fit\n");
  for (const int width : {30, 40, 60, 80, 200}) {
    const std::string text = table.text({.width = width});
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, static_cast<size_t>(width)) << text;
      begin = end + 1;
    }
  }
}

TEST(Table, ColourChangesNoText) {
  Table table({{"name", Align::kLeft}, {"status", Align::kLeft}});
  table.add_row({"fused", "ok, bit-identical"});
  table.add_row({"cached", "WRONG: 3 of 4 elements"});
  const std::string plain = table.text(kWide);
  std::string coloured = table.text({.width = 10000, .colour = true});
  EXPECT_NE(coloured.find("\033[1;31mWRONG"), std::string::npos);
  EXPECT_EQ(plain.find('\033'), std::string::npos);
  for (size_t at = coloured.find('\033'); at != std::string::npos; at = coloured.find('\033'))
    coloured.erase(at, coloured.find('m', at) - at + 1);
  EXPECT_EQ(coloured, plain);
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

TEST(BarPicture, WidthLeavesRoomForLabelsAndNotes) {
  const std::vector<Bar> bars = {{"fused", 1.0, "1.000 ms"}, {"two_pass", 2.0, "2.000 ms  1.00x"}};
  for (const int columns : {40, 60, 80, 300}) {
    const std::string picture = bar_picture(bars, bar_width(bars, columns));
    for (size_t begin = 0; begin < picture.size();) {
      const size_t end = picture.find('\n', begin);
      EXPECT_LE(end - begin, static_cast<size_t>(columns)) << picture;
      begin = end + 1;
    }
  }
  EXPECT_EQ(bar_width(bars, 300), 50);
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
                                                "--bias",
                                                "bf16",
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

// The command that repeats a case tries all ways of rows, the wrong one among them.
TEST(Reproduction, NamesGroups) {
  const VerifyCommand command =
      parsed_verify({"verify", "--m", "8", "--grouping", "contiguous", "--row-experts"});
  VerifyCase item;
  item.problem = command.problem.problem(8, 16, 32, 4);
  item.rows = verify::ExpertRows::kOneExpert;
  EXPECT_EQ(name_of(item), "8 x 16 x 32 x 4, contiguous, rows one_expert");
  std::vector<std::string> arguments = words(reproduction(command, item, StrategyId::kFused));
  arguments.erase(arguments.begin());
  const VerifyCommand again = parsed_verify(arguments);
  EXPECT_EQ(again.problem.grouping, Grouping::kContiguous);
  EXPECT_TRUE(again.row_experts);
}

TEST(Verdict, SaysWhatWasWrittenInRowsOfNobody) {
  verify::CheckReport report;
  report.compared = 100;
  EXPECT_TRUE(report.passed());
  report.written_elsewhere = 2;
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(verdict(report, DataType::kF16),
            "WRONG: 0 of 100 elements, and 2 written in rows that are no expert's");
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
  result.timing.rounds = std::vector<double>(6, seconds);
  measure::summarise(result.timing);
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
  result.timing = {};
  EXPECT_EQ(result.status(), "ok, 10 elements, no time");
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

BenchReport two_shapes(double fused_ms, double first_two_pass_ms, double second_two_pass_ms) {
  BenchReport report;
  for (const double two_pass_ms : {first_two_pass_ms, second_two_pass_ms}) {
    BenchShape shape;
    shape.problem.m = shape.problem.n = shape.problem.k = 16;
    shape.results = {timed(StrategyId::kFused, fused_ms * 1e-3),
                     timed(StrategyId::kTwoPass, two_pass_ms * 1e-3)};
    report.shapes.push_back(shape);
  }
  return report;
}

void set_rounds(BenchResult& result, std::vector<double> seconds) {
  result.timing = {};
  result.timing.rounds = std::move(seconds);
  measure::summarise(result.timing);
}

// Two shapes: two_pass 8 and 2 ms, fused 2 and 2 ms: means 4 and 2 ms, speed-ups 4 and 1, mean 2.
// Half of the rounds' ratios are 4, half are 1: shapes that disagree are a tie.
TEST(BenchReport, RankingIsTheGeometricMeanOverShapes) {
  BenchReport report = two_shapes(2.0, 8.0, 2.0);
  std::string text = bench_text(report, kWide);
  EXPECT_NE(text.find(" 1= fused    |#########################                         | 2.000 ms "
                      " 2.00x\n"
                      " 1= two_pass |##################################################| 4.000 ms "
                      " 1.00x  [1.00 .. 4.00]\n"),
            std::string::npos)
      << text;
  report = two_shapes(2.0, 8.0, 4.0);
  text = bench_text(report, kWide);
  EXPECT_NE(text.find(" 2  two_pass |##################################################| 5.657 ms "
                      " 1.00x  [2.00 .. 4.00]\n"),
            std::string::npos)
      << text;
  // A strategy without a time for each shape is not ranked.
  set_rounds(report.shapes[1].results[1], {});
  EXPECT_EQ(bench_text(report, kWide).find("two_pass |"), std::string::npos);
  EXPECT_NE(bench_text(report, kWide).find("not ranked: two_pass (M 16 N 16 K 16: no time)"),
            std::string::npos);
}

// However few the rounds, every strategy has a place, and the confidence says what it is worth.
TEST(BenchReport, FewRoundsAreRankedAtTheirConfidence) {
  BenchReport report = two_shapes(2.0, 3.0, 3.0);
  const auto keep = [&](size_t rounds) {
    for (BenchShape& shape : report.shapes) {
      for (BenchResult& result : shape.results) {
        result.timing.rounds.resize(rounds);
        measure::summarise(result.timing);
      }
    }
  };
  const auto says = [&](const std::string& what) {
    return bench_text(report, kWide).find(what) != std::string::npos;
  };
  EXPECT_TRUE(says("lies there at 95 % confidence\n"));
  keep(2);  // of two shapes: four ratios, 1 - 2 / 2^4
  Ranking ranking = rank(report);
  ASSERT_EQ(ranking.ranked.size(), 2u);
  EXPECT_EQ(ranking.ranked[1].place, 2);
  EXPECT_DOUBLE_EQ(ranking.confidence, 0.875);
  EXPECT_TRUE(says("lies there at 87 % confidence, for want of rounds\n"));
  report.shapes.pop_back();
  keep(1);
  ranking = rank(report);
  ASSERT_EQ(ranking.ranked.size(), 2u);
  EXPECT_EQ(ranking.ranked[1].place, 1);
  EXPECT_EQ(ranking.ranked[1].result->name(), "two_pass");  // the slower one, as far as is known
  EXPECT_TRUE(says("one round has no intervals"));
  EXPECT_TRUE(says("n/a (1)"));
  const auto json = nlohmann::json::parse(bench_json(report));
  ASSERT_EQ(json["ranking"].size(), 2u);
  EXPECT_TRUE(json["ranking"][1]["interval"].is_null());
  EXPECT_TRUE(json["shapes"][0]["results"][0]["relative_noise"].is_null());
  EXPECT_TRUE(json["shapes"][0]["results"][0]["interval_ms"].is_null());
}

// A round that was slow for both says nothing against the other one: fused takes 0.9 of two_pass's
// time in each, though their times overlap.
TEST(BenchReport, StrategiesAreComparedRoundByRound) {
  BenchReport report = two_shapes(1.0, 1.0, 1.0);
  const std::vector<double> noisy = {1.0, 2.0, 3.0, 1.5, 2.5, 1.2};
  std::vector<double> faster = noisy;
  for (double& seconds : faster) seconds *= 0.9;
  for (BenchShape& shape : report.shapes) {
    set_rounds(shape.results[0], faster);
    set_rounds(shape.results[1], noisy);
  }
  const Ranking ranking = rank(report);
  EXPECT_EQ(ranking.ranked[0].result->name(), "fused");
  EXPECT_EQ(ranking.ranked[1].place, 2);
  EXPECT_TRUE(ranking.ranked[1].tied.empty());
  const auto json = nlohmann::json::parse(bench_json(report));
  EXPECT_NEAR(json["ranking"][1]["time_over_first"].get<double>(), 1 / 0.9, 1e-9);
  EXPECT_NEAR(json["ranking"][1]["interval"][0].get<double>(), 1 / 0.9, 1e-9);
  EXPECT_NEAR(json["shapes"][0]["results"][0]["speed_up_over_two_pass"].get<double>(), 1 / 0.9,
              1e-9);
}

// A place is one more than the strategies that are faster for sure. Here the middle one can be told
// from neither of the others, which can be told apart.
TEST(BenchReport, TiesAreSaidByName) {
  BenchReport report = two_shapes(1.00, 1.04, 1.04);
  for (BenchShape& shape : report.shapes) {
    shape.results.push_back(timed(StrategyId::kCached, 1.0));
    set_rounds(shape.results[2], {0.95e-3, 1.09e-3, 0.99e-3, 1.05e-3, 1.02e-3, 1.02e-3});
  }
  const Ranking ranking = rank(report);
  ASSERT_EQ(ranking.ranked.size(), 3u);
  EXPECT_EQ(ranking.ranked[1].result->name(), "cached");
  EXPECT_EQ(ranking.ranked[1].place, 1);
  EXPECT_EQ(ranking.ranked[2].place, 2);
  EXPECT_EQ(ranking.ranked[2].tied, (std::vector<std::string>{"cached"}));
  const std::string text = bench_text(report, kWide);
  EXPECT_NE(text.find("=: tied: those of one place cannot be told apart; nor can cached and "
                      "two_pass, whose places others decide\n"),
            std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(bench_json(report));
  EXPECT_EQ(json["ranking"][0]["tied"], true);
  EXPECT_EQ(json["ranking"][0]["tied_with"], (std::vector<std::string>{"cached"}));
}

TEST(BenchReport, WrongResultsAreNotRanked) {
  BenchReport report = two_shapes(2.0, 8.0, 2.0);
  report.shapes[0].results[0].check->failed = 1;
  EXPECT_NE(
      bench_text(report, kWide).find("not ranked: fused (M 16 N 16 K 16: its result is wrong)"),
      std::string::npos)
      << bench_text(report, kWide);
}

TEST(BenchReport, MoreThanTheRooflineIsADefectAndNoFigure) {
  BenchReport report = two_shapes(2.0, 8.0, 2.0);
  report.shapes[0].results[0].throughput.roofline_share = 1.37;
  const std::string text = bench_text(report, kWide);
  EXPECT_EQ(text.find("137"), std::string::npos) << text;
  EXPECT_NE(text.find("> 100 ?: a defect of the measurement"), std::string::npos) << text;
  EXPECT_EQ(bench_csv(report).find("1.37"), std::string::npos);
  const auto json = nlohmann::json::parse(bench_json(report));
  EXPECT_TRUE(json["shapes"][0]["results"][0]["roofline_share"].is_null());
  EXPECT_EQ(json["shapes"][0]["results"][0]["roofline_defect"], true);
  EXPECT_EQ(json["shapes"][0]["results"][1]["roofline_defect"], false);
}

TEST(BenchReport, SaysBesideTheRankingWhatOthersUsed) {
  BenchReport report = two_shapes(2.0, 8.0, 8.0);
  report.seconds = 12;
  EXPECT_NE(bench_text(report, kWide).find("timed for 12 s; what others used meanwhile is not"),
            std::string::npos);
  report.other_processors = 1.26;
  EXPECT_NE(bench_text(report, kWide).find("timed for 12 s; others used 1.3 processors meanwhile"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(bench_json(report))["other_processors"], 1.26);
}

TEST(BenchReport, FitsTheTerminal) {
  BenchReport report = two_shapes(2.0, 8.0, 2.0);
  report.shapes[0].peaks = measure::Peaks{.read_gbps = 20};
  for (const int width : {60, 80, 120}) {
    const std::string text = bench_text(report, {.width = width});
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, static_cast<size_t>(width)) << text.substr(begin, end - begin);
      begin = end + 1;
    }
  }
}

// Few rows take turns on sets of operands; what a cache holds all the same is not held against
// memory's bandwidth, which would give shares above 1.
TEST(BenchLimits, OperandsInACacheHaveNoBandwidthLimit) {
  Problem small;
  small.m = 4, small.n = 64, small.k = 128;
  OperandSizes sizes{};
  sizes.gate = sizes.up = 4096;
  sizes.gate_scales = sizes.up_scales = 512;
  const Rotation cached = rotation_for(small, sizes, 32 << 20, /*gpu=*/false);
  EXPECT_FALSE(cached.from_memory);
  EXPECT_GT(cached.sets, 1);
  sizes.gate = sizes.up = 16 << 20;
  EXPECT_TRUE(rotation_for(small, sizes, 32 << 20, false).from_memory);
  small.m = 512;
  EXPECT_EQ(rotation_for(small, sizes, 32 << 20, false).sets, 1);

  measure::Peaks peaks;
  peaks.vnni_zmm_gops = 1000, peaks.read_gbps = 1e-6;
  small.m = 4;
  const auto held = measure::throughput(
      small, 1e-6, limits_of(peaks, small, Isa::kAvx512Vnni, /*from_memory=*/true));
  const auto free = measure::throughput(
      small, 1e-6, limits_of(peaks, small, Isa::kAvx512Vnni, /*from_memory=*/false));
  ASSERT_TRUE(held && free);
  EXPECT_GT(held->roofline_share, 1.0);
  EXPECT_LT(free->roofline_share, 1.0);
  EXPECT_GT(free->roofline_share, 0.0);
}

TEST(BenchLimits, AreThePeaksThatEnterARoofline) {
  const Problem problem;
  for (const bool from_memory : {false, true}) {
    SCOPED_TRACE(from_memory);
    EXPECT_EQ(is_limit(&measure::Peaks::read_gbps, problem, Isa::kAvx2, from_memory), from_memory);
    EXPECT_TRUE(is_limit(&measure::Peaks::avx2_dot_gops, problem, Isa::kAvx2, from_memory));
    EXPECT_FALSE(is_limit(&measure::Peaks::vnni_zmm_gops, problem, Isa::kAvx2, from_memory));
    EXPECT_FALSE(is_limit(&measure::Peaks::read_gbps, problem, Isa::kScalar, from_memory));
    EXPECT_TRUE(is_limit(&measure::Peaks::sdot_gops, problem, Isa::kNeon, from_memory));
    EXPECT_TRUE(is_limit(&measure::Peaks::smmla_gops, problem, Isa::kNeonI8mm, from_memory));
    EXPECT_FALSE(is_limit(&measure::Peaks::sdot_gops, problem, Isa::kNeonI8mm, from_memory));
  }
}

TEST(BenchReport, NamesThePeaksThatWereWanted) {
  BenchReport report = two_shapes(2.0, 8.0, 2.0);
  report.shapes[0].peaks = measure::Peaks{.avx2_dot_gops = 300};
  report.shapes[0].from_memory = false;
  EXPECT_NE(bench_text(report, kWide).find("same rounds: AVX2 dot 300 GOP/s\n"), std::string::npos)
      << bench_text(report, kWide);
  report.shapes[0].from_memory = true;
  EXPECT_NE(bench_text(report, kWide).find("same rounds: read unknown, AVX2 dot 300"),
            std::string::npos);
  report.shapes[0].peaks = measure::Peaks{};
  report.shapes[0].from_memory = false;
  EXPECT_NE(bench_text(report, kWide).find("same rounds: all unknown"), std::string::npos);
}

TEST(CheckMemory, RefusesWhatTheMachineCannotHold) {
  OperandSizes sizes{};
  sizes.gate = sizes.up = int64_t{1} << 40;
  EXPECT_TRUE(check_memory(sizes, 1, 1, 4e12).ok());
  const Status status = check_memory(sizes, 6, 1, 8e9);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "m, n, k, l: 13.19 TB of operands and results; this machine has 8.00 GB of memory");
  sizes.d = std::numeric_limits<int64_t>::max();
  EXPECT_NE(check_memory(sizes, 6, 10, 8e9).message().find("more than 9 EB"), std::string::npos);
}

TEST(BenchReport, OneStrategyWithBothKindsOfWeightsIsTwoContestants) {
  BenchReport report;
  report.on_gpu = true;
  BenchShape shape;
  shape.problem.m = shape.problem.n = shape.problem.k = 16;
  shape.results = {timed(StrategyId::kFused, 1e-5), timed(StrategyId::kFused, 2e-5),
                   timed(StrategyId::kCached, 4e-5)};
  shape.results[0].prepared = shape.results[0].also_unpacked = true;
  shape.results[2].prepared = true;
  report.shapes = {shape, shape};
  EXPECT_NE(
      bench_text(report, kWide)
          .find(" 1  fused prepared |#############                                     | 10.00 us\n"
                " 2  fused          |#########################                         | 20.00 us  "
                "[2.00 .. 2.00]\n"
                " 3  cached         |##################################################| 40.00 us  "
                "[4.00 .. 4.00]\n"),
      std::string::npos)
      << bench_text(report, kWide);
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
