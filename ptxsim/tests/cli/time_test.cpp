// `ptxsim time`: a kernel and a description in, an estimate out; what is refused.
#include <nlohmann/json.hpp>

#include "cli/program_with_tools.hpp"

namespace {

using namespace ptxsim_test;

const std::string kLaunch = R"({"name": "small", "clusters": 64, "ctas_per_cluster": 2,
 "pipeline": {"stages": 4, "stages_per_tile": 8, "stage_bytes": 30720, "unique_bytes": 8000000},
 "mma": {"per_stage": 8, "n": 64, "shares_a": true}, "epilogue": {"elements": 8192, "slots_per_element": 12}})";

TEST_F(Program, TimesAKernel) {
  const Outcome outcome =
      start({"time", "k.ptx", "--case", "c.json", "--sass", "off", "--json", "--svg", "k.svg"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("gpu"), "NVIDIA B200");
  const auto& launch = json.at("launches").at(0);
  EXPECT_EQ(launch.at("name"), "twice");
  double percent = 0;
  for (const auto& share : launch.at("critical_path")) percent += share.at("percent").get<double>();
  EXPECT_NEAR(percent, 100, 1e-6);
  EXPECT_LT(launch.at("interval").at("low_us"), launch.at("interval").at("high_us"));
  EXPECT_TRUE(contains(read("k.svg"), "twice on NVIDIA B200"));
}

TEST_F(Program, TimesADescription) {
  write("l.json", kLaunch);
  const Outcome outcome = start({"time", "--launch", "l.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.out, "An estimate for NVIDIA B200, not a measurement."));
  EXPECT_TRUE(contains(outcome.out, "critical path of the first wave:"));
  EXPECT_TRUE(contains(outcome.out, "load waits for tensor cores (commit), held by "));
  EXPECT_EQ(start({"time", "--launch", "l.json"}).out, outcome.out);
  EXPECT_NE(start({"time", "--launch", "l.json", "--gpu", "h200"}).out, outcome.out);
}

TEST_F(Program, ALaterLaunchCanOverlapTheOneBefore) {
  write("l.json", kLaunch);
  const auto total = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"time", "--launch", "l.json", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    return nlohmann::json::parse(start(args).out).at("launches").at(0).at("us").get<double>();
  };
  EXPECT_NEAR(total({}) - total({"--pdl"}), 0.5, 1e-9);
}

// What ptxas might make of kKernel; the sum is two instructions.
const std::string kSass = R"(	.section	.text.twice,"ax",@progbits
.text.twice:
	//## File ".nv_debug_ptx_txt", line 12
        /*0000*/                   LDG.E R2, desc[UR4][R2.64] ;
	//## File ".nv_debug_ptx_txt", line 13
        /*0010*/                   IADD3 R5, R2, R2, RZ ;
        /*0020*/                   IADD3 R5, R5, RZ, RZ ;
	//## File ".nv_debug_ptx_txt", line 15
        /*0030*/                   STG.E desc[UR4][R4.64], R5 ;
        /*0040*/                   EXIT ;
)";

class TimeWithTools : public ProgramWithTools {
 protected:
  TimeWithTools() { write("k.sass", kSass); }
  Outcome time(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"time", "k.ptx", "--case", "c.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments);
  }
  // What JSON says of where the numbers of instructions come from.
  nlohmann::json counts(std::vector<std::string> more = {}) const {
    more.push_back("--json");
    const Outcome outcome = time(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_EQ(outcome.err, "");
    if (outcome.exit_code != 0) return nlohmann::json::object();
    return nlohmann::json::parse(outcome.out).at("launches").at(0).at("instructions");
  }
};

TEST_F(TimeWithTools, CountsTheInstructionsThatPtxasMakes) {
  const std::vector<std::vector<std::string>> ways{
      {}, {"--sass", "auto"}, {"--sass", "ptxas"}, {"--sass", "k.sass"}};
  for (const std::vector<std::string>& how : ways) {
    const auto told = counts(how);
    EXPECT_EQ(told.at("from"), how == ways.back() ? "listing" : "ptxas");
    EXPECT_EQ(told.at("statements"), 10);
    EXPECT_EQ(told.at("counted"), 10);
    EXPECT_EQ(told.at("note"), "");
  }
  const std::string arguments = read("arguments");
  EXPECT_TRUE(arguments.starts_with("-arch=sm_90a -lineinfo --entry twice -o ")) << arguments;
  EXPECT_TRUE(contains(arguments, "/kernel.ptx\n")) << arguments;
  EXPECT_TRUE(contains(time({}).out, "10 of 10 statements have the instructions that ptxas made"));
  EXPECT_TRUE(left_nothing_behind());
}

TEST_F(TimeWithTools, TheTableIsTheSameWithToolsAndWithout) {
  const Outcome with = time({"--sass", "off"});
  EXPECT_TRUE(contains(with.out, "  instructions are the table's\n")) << with;
  EXPECT_EQ(counts({"--sass", "off"}).at("counted"), 0);
  EXPECT_FALSE(std::filesystem::exists(path("arguments")));
  remove_tools();
  EXPECT_EQ(time({"--sass", "off"}).out, with.out);
  EXPECT_EQ(replaced(time({}).out, ": no ptxas was found", ""), with.out);
}

TEST_F(TimeWithTools, AMissingToolIsAnErrorOrTheTable) {
  std::filesystem::remove(path("cuda/bin/nvdisasm"));
  const Variable nowhere("PATH", "");
  EXPECT_EQ(counts().at("from"), "table");
  EXPECT_EQ(counts().at("note"), "no nvdisasm was found");
  expect_refused(time({"--sass", "ptxas"}), "", "--sass: no nvdisasm in $CUDA_HOME/bin, ");
}

TEST_F(TimeWithTools, AToolThatFailsIsAnErrorOrANote) {
  tool("ptxas", "echo 'ptxas fatal   : no such target' >&2; exit 3");
  const std::string reason =
      "ptxas -arch=sm_90a -lineinfo --entry twice -o kernel.cubin kernel.ptx: exit status 3: "
      "ptxas fatal   : no such target";
  expect_refused(time({"--sass", "ptxas"}), "", reason);
  const auto told = counts();
  EXPECT_EQ(told.at("from"), "table");
  EXPECT_EQ(told.at("counted"), 0);
  EXPECT_TRUE(contains(told.at("note").get<std::string>(), reason)) << told;
  EXPECT_TRUE(contains(time({}).out, "  instructions are the table's: " + path("cuda").string()));
  EXPECT_TRUE(left_nothing_behind());
}

TEST_F(TimeWithTools, WhatIsNoListingIsRefused) {
  tool("nvdisasm", "echo nothing");
  expect_refused(time({"--sass", "ptxas"}), "", "nvdisasm: no instruction with its line of PTX");
  EXPECT_EQ(counts().at("from"), "table");
  write("k.sass", "nothing");
  expect_refused(time({"--sass", "k.sass"}), "", "k.sass: no instruction with its line of PTX");
  expect_refused(time({"--sass", "none.sass"}), "none.sass", "cannot read");
  EXPECT_TRUE(left_nothing_behind());
}

TEST_F(TimeWithTools, ASignalLeavesNothingBehind) {
  tool("ptxas", "touch started; sleep 1");
  const Outcome outcome = start({"time", "k.ptx", "--case", "c.json"}, "started", SIGTERM);
  EXPECT_EQ(outcome.exit_code, -1);
  EXPECT_TRUE(left_nothing_behind());
}

TEST_F(Program, WhatCannotBeTimedIsRefused) {
  write("l.json", kLaunch);
  expect_refused(start({"time"}), "", "time needs a kernel or --launch, and not both");
  expect_refused(start({"time", "k.ptx", "--launch", "l.json"}), "", "and not both");
  expect_refused(start({"time", "--launch", "l.json", "--gpu", "b100"}), "",
                 "--gpu: 'b100'; must be one of a100, b200, gb10, gb300, h100, h200, l40s, "
                 "rtx3090, rtx4090, rtx5090, or a file");
  expect_refused(start({"time", "--launch", "none.json"}), "none.json", "cannot read");
  write("gpu.json", R"({"gpu": "none", "parameters": {}})");
  expect_refused(start({"time", "--launch", "l.json", "--gpu", "gpu.json"}), "gpu.json:1:31",
                 "sm_clock_ghz");
  expect_refused(start({"time", "k.ptx", "--case", "c.json", "--cluster", "5"}), "",
                 "cluster 5 of a grid of 1; they count from 0");
  expect_refused(start({"time", "--launch", "l.json", "--svg", "none/k.svg"}), "",
                 "--svg: cannot write 'none/k.svg'");
  write("l.json", "[]");
  expect_refused(start({"time", "--launch", "l.json"}), "", "l.json: no launch");
}

}  // namespace
