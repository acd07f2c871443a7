#include <algorithm>
#include <nlohmann/json.hpp>

#include "run_program.hpp"

namespace dualgemm::test {
namespace {

using nlohmann::json;
using VerifyBench = CliTest;

TEST_F(VerifyBench, VerifyDefaultIsAllRight) {
  const ProgramResult result = run({"verify", "--random-shapes", "4", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result;
  const json report = json::parse(result.out);
  EXPECT_EQ(report["passed"], true);
  ASSERT_EQ(report["cases"].size(), 4u);
  int compared = 0;
  for (const json& item : report["cases"]) {
    for (const json& entry : item["results"]) compared += entry["status"] == "ok";
  }
  EXPECT_GE(compared, 4 * 6);  // strategies that are there on every machine
  EXPECT_TRUE(contains(result.err, "0 wrong"));
}

TEST_F(VerifyBench, VerifyTableHasOneColumnPerStrategy) {
  const ProgramResult result = run({"verify", "--m", "1,17", "--n", "33", "--k", "48", "--strategy",
                                    "reference,two_pass,fused"});
  ASSERT_EQ(result.exit_code, 0) << result;
  for (const char* part : {"reference", "two_pass", "fused", "ok"})
    EXPECT_TRUE(contains(result.out, part));
  EXPECT_TRUE(contains(result.err, "6 comparisons right, 0 wrong"));
}

TEST_F(VerifyBench, VerifySampled) {
  const ProgramResult result = run({"verify", "--m", "40", "--n", "320", "--k", "64", "--samples",
                                    "100", "--strategy", "fused", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result;
  const int64_t compared = json::parse(result.out)["cases"][0]["results"][0]["check"]["compared"];
  EXPECT_GE(compared, 60);
  EXPECT_LT(compared, 40 * 320);
}

// Each shape with every way in which rows can fall to experts; offsets leave no row without an
// expert.
TEST_F(VerifyBench, VerifyGroupsOfExperts) {
  const auto verify = [this](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"verify",
                                          "--device",
                                          "cpu",
                                          "--m",
                                          "20",
                                          "--n",
                                          "48",
                                          "--k",
                                          "64",
                                          "--l",
                                          "1,4",
                                          "--strategy",
                                          "reference,fused,fp8",
                                          "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const auto rows_of = [](const json& report) {
    std::vector<std::string> rows;
    for (const json& item : report["cases"]) rows.push_back(item["rows"]);
    return rows;
  };
  using Rows = std::vector<std::string>;
  const ProgramResult offsets = verify({"--grouping", "contiguous"});
  ASSERT_EQ(offsets.exit_code, 0) << offsets;
  EXPECT_EQ(rows_of(json::parse(offsets.out)),
            (Rows{"ragged", "one_expert", "ragged", "one_expert"}));
  EXPECT_EQ(json::parse(offsets.out)["cases"][0]["problem"]["grouping"], "contiguous");
  for (const std::vector<std::string>& groups :
       {Rows{"--grouping", "contiguous", "--row-experts"}, Rows{"--grouping", "masked"}}) {
    const ProgramResult result = verify(groups);
    ASSERT_EQ(result.exit_code, 0) << result;
    EXPECT_EQ(rows_of(json::parse(result.out)),
              (Rows{"ragged", "one_expert", "nobody", "ragged", "one_expert", "nobody"}));
    EXPECT_TRUE(contains(result.err, "18 comparisons right, 0 wrong"));
  }
}

TEST_F(VerifyBench, GroupsThatCannotBeAreRefused) {
  const auto refusal = [this](const std::vector<std::string>& arguments) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result;
    return result.err;
  };
  EXPECT_TRUE(contains(refusal({"verify", "--grouping", "maskd"}), "did you mean masked?"));
  EXPECT_EQ(refusal({"verify", "--grouping", "masked", "--row-experts"}),
            "dualgemm: --row-experts: masked; needs --grouping contiguous\n");
  EXPECT_EQ(refusal({"verify", "--row-experts"}),
            "dualgemm: --row-experts: none; needs --grouping contiguous\n");
  EXPECT_EQ(refusal({"verify", "--weights", "w", "--activations", "x", "--grouping", "masked"}),
            "dualgemm: --grouping: masked; is for random operands; `run --experts --check` takes "
            "files\n");
}

TEST_F(VerifyBench, VerifyGivenFiles) {
  make_layer();
  quantize();
  const ProgramResult result =
      run({"verify", "--weights", path("q.safetensors"), "--activations", path("x.npy")});
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "0 wrong"));
}

// Weights cannot be prepared for the oracle: refused, as `plan` refuses it.
TEST_F(VerifyBench, HopelessRequestsAreRefusedAsPlanDoes) {
  for (const char* command : {"plan", "verify", "bench"}) {
    const ProgramResult result = run(
        {command, "--m", "4", "--n", "32", "--k", "64", "--strategy", "reference", "--prepared"});
    EXPECT_EQ(result.exit_code, 2) << result;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

// Before peaks are measured, which takes seconds and says so.
TEST_F(VerifyBench, ShapesThatNoMemoryHoldsAreRefusedAtOnce) {
  for (const char* command : {"bench", "verify"}) {
    const ProgramResult result =
        run({command, "--m", "1000000", "--n", "1000000", "--k", "1000000"});
    EXPECT_EQ(result.exit_code, 2) << result;
    EXPECT_TRUE(contains(result.err, "dualgemm: m, n, k, l: "));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

// One round has no interval: both have the first place.
TEST_F(VerifyBench, OneRoundTellsNothingApart) {
  const ProgramResult result = run({"bench", "--device", "cpu", "--m", "4", "--n", "64", "--k",
                                    "128", "--strategy", "two_pass,fused", "--min-rounds", "1",
                                    "--max-rounds", "1", "--seconds", "8", "--no-peaks"});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.out, "one round has no intervals"));
  EXPECT_TRUE(contains(result.out, "n/a (1)"));
  EXPECT_TRUE(contains(result.out, " 1= fused"));
  EXPECT_TRUE(contains(result.out, " 1= two_pass"));
}

// Whatever the machine does meanwhile, and however short the time is.
TEST_F(VerifyBench, EveryStrategyHasAPlace) {
  const ProgramResult result =
      run({"bench", "--device", "cpu", "--m", "4,8", "--n", "64", "--k", "128", "--min-rounds", "2",
           "--max-rounds", "2", "--seconds", "0.001", "--no-peaks", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result;
  const json report = json::parse(result.out);
  EXPECT_EQ(report["ranking"].size(), report["shapes"][0]["results"].size());
  EXPECT_TRUE(report["not_ranked"].empty());
  EXPECT_EQ(report["ranking"][0]["place"], 1);
  for (const json& entry : report["ranking"]) {
    EXPECT_GE(entry["place"].get<int>(), 1);
    if (entry != report["ranking"][0]) {
      EXPECT_EQ(entry["confidence"], 0.875);
      EXPECT_LE(entry["interval"][0].get<double>(), entry["time_over_first"].get<double>());
      EXPECT_GE(entry["interval"][1].get<double>(), entry["time_over_first"].get<double>());
    }
  }
  EXPECT_EQ(report["shapes"][0]["rounds"], 2);
}

std::vector<std::string> small_bench(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"bench",
                                        "--device",
                                        "cpu",
                                        "--m",
                                        "4",
                                        "--n",
                                        "64",
                                        "--k",
                                        "128",
                                        "--strategy",
                                        "two_pass,fused",
                                        "--min-rounds",
                                        "1",
                                        "--max-rounds",
                                        "3",
                                        "--seconds",
                                        "8",
                                        "--no-peaks"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_F(VerifyBench, BenchRanksAndChecks) {
  const ProgramResult result =
      run(small_bench({"--markdown", path("report.md"), "--json", path("report.json")}));
  ASSERT_EQ(result.exit_code, 0) << result;
  for (const char* part :
       {"M 4 N 64 K 128", "two_pass", "fused", "speed-up", "intermediates", "shorter is", "ok"}) {
    EXPECT_TRUE(contains(result.out, part));
  }
  const json report = json::parse(read_text(path("report.json")));
  ASSERT_EQ(report["shapes"].size(), 1u);
  const json& results = report["shapes"][0]["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_LE(results[0]["median_ms"].get<double>(), results[1]["median_ms"].get<double>());
  for (const json& entry : results) {
    EXPECT_EQ(entry["check"]["passed"], true);
    EXPECT_GT(entry["gops"].get<double>(), 0.0);
    if (entry["strategy"] == "two_pass") {
      EXPECT_GE(entry["intermediate_bytes"].get<int64_t>(), 2 * 4 * 64 * 4);  // R1 and R2
    }
  }
  EXPECT_EQ(report["ranking"].size(), 2u);
  EXPECT_TRUE(report["build"].contains("revision"));
  const std::string markdown = read_text(path("report.md"));
  EXPECT_TRUE(contains(markdown, "| strategy |"));
  EXPECT_TRUE(contains(markdown, "## Ranking"));
}

// Its error stands beside its time, also when it is asked for alone.
TEST_F(VerifyBench, Fp8IsListedWithItsError) {
  for (const char* strategies : {"fused,fp8", "fp8"}) {
    const ProgramResult result =
        run({"bench", "--device", "cpu", "--m", "16", "--n", "64", "--k", "512", "--strategy",
             strategies, "--min-rounds", "1", "--max-rounds", "1", "--seconds", "8", "--no-peaks",
             "--json"});
    ASSERT_EQ(result.exit_code, 0) << result;
    int listed = 0;
    const json report = json::parse(result.out);
    for (const json& entry : report["shapes"][0]["results"]) {
      if (entry["strategy"] != "fp8") continue;
      ++listed;
      EXPECT_GT(entry["rel_l2"].get<double>(), 0.005);
      EXPECT_LT(entry["rel_l2"].get<double>(), 0.2);
      EXPECT_GT(entry["median_ms"].get<double>(), 0.0);
    }
    EXPECT_EQ(listed, 1);
    const ProgramResult verified = run({"verify", "--device", "cpu", "--m", "16", "--n", "64",
                                        "--k", "512", "--strategy", strategies});
    ASSERT_EQ(verified.exit_code, 0) << verified;
    EXPECT_TRUE(contains(verified.out, "fp8"));
    EXPECT_TRUE(contains(verified.out, "e-02")) << verified;
  }
}

TEST_F(VerifyBench, BenchCsvOnStdout) {
  const ProgramResult result = run(small_bench({"--csv"}));
  ASSERT_EQ(result.exit_code, 0) << result;
  std::string version = run({"--version"}).out;  // "dualgemm 0.1.0\n"
  version = "," + version.substr(9, version.size() - 10);
  std::istringstream lines(result.out);
  std::string header, row;
  std::getline(lines, header);
  EXPECT_EQ(header.rfind("m,n,k,l,strategy,config,median_ms,", 0), 0u) << header;
  EXPECT_TRUE(header.ends_with(",revision,device,seed,threads,version")) << header;
  int rows = 0;
  while (std::getline(lines, row)) {
    EXPECT_EQ(row.rfind("4,64,128,1,", 0), 0u) << row;
    EXPECT_TRUE(row.ends_with(version)) << row;
    ++rows;
  }
  EXPECT_EQ(rows, 2);
}

TEST_F(VerifyBench, CtrlCLeavesNoReport) {
  const ProgramResult result = interrupt(
      {"bench", "--json", path("report.json"), "--csv", path("report.csv"), "--seconds", "60"},
      500);
  EXPECT_EQ(result.exit_code, -1) << result;  // by the signal, as a shell expects
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(files().empty());
}

TEST_F(VerifyBench, BenchListsShapes) {
  const ProgramResult result = run({"bench", "--m", "1:3:2", "--n", "32", "--k", "64,80",
                                    "--strategy", "fused", "--min-rounds", "1", "--max-rounds", "1",
                                    "--seconds", "4", "--no-peaks", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result;
  const json report = json::parse(result.out);
  ASSERT_EQ(report["shapes"].size(), 4u);
  EXPECT_EQ(report["shapes"][0]["problem"]["m"], 1);
  EXPECT_EQ(report["shapes"][1]["problem"]["m"], 3);
  EXPECT_EQ(report["shapes"][2]["problem"]["k"], 80);
}

}  // namespace
}  // namespace dualgemm::test
