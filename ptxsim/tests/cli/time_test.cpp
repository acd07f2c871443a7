// `ptxsim time`: a kernel and a description in, an estimate out; what is refused.
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace {

using namespace ptxsim_test;

const std::string kLaunch = R"({"name": "small", "clusters": 64, "ctas_per_cluster": 2,
 "pipeline": {"stages": 4, "stages_per_tile": 8, "stage_bytes": 30720, "unique_bytes": 8000000},
 "mma": {"per_stage": 8, "n": 64, "shares_a": true}, "epilogue": {"elements": 8192, "slots_per_element": 12}})";

TEST_F(Program, TimesAKernel) {
  const Outcome outcome = start({"time", "k.ptx", "--case", "c.json", "--json", "--svg", "k.svg"});
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

class ProgramWithTools : public Program {
 protected:
  ProgramWithTools() {
    std::filesystem::create_directories(path("cuda/bin"));
    setenv("CUDA_HOME", path("cuda").c_str(), 1);
    tool("ptxas", "echo \"$@\" > arguments");
    tool("nvdisasm", "cat k.sass");
    write("k.sass", kSass);
  }
  ~ProgramWithTools() override { unsetenv("CUDA_HOME"); }
  void tool(const std::string& name, const std::string& does) const {
    const std::string file = "cuda/bin/" + name;
    write(file, "#!/bin/sh\n" + does + "\n");
    std::filesystem::permissions(path(file), std::filesystem::perms::owner_all);
  }
  Outcome time(const std::string& sass, const std::string& format = "--json") const {
    return start({"time", "k.ptx", "--case", "c.json", "--sass", sass, format});
  }
};

TEST_F(ProgramWithTools, CountsTheInstructionsThatPtxasMakes) {
  for (const char* how : {"ptxas", "auto", "k.sass"}) {
    const Outcome outcome = time(how);
    ASSERT_EQ(outcome.exit_code, 0) << outcome;
    const auto counts = nlohmann::json::parse(outcome.out).at("launches").at(0).at("instructions");
    EXPECT_EQ(counts.at("from"), how == std::string("k.sass") ? "listing" : "ptxas");
    EXPECT_EQ(counts.at("statements"), 10);
    EXPECT_EQ(counts.at("counted"), 10);
  }
  const std::string arguments = read("arguments");
  EXPECT_TRUE(contains(arguments, "-arch=sm_90a -lineinfo --entry twice -o ")) << arguments;
  EXPECT_TRUE(contains(arguments, "/kernel.cubin k.ptx")) << arguments;
  EXPECT_TRUE(contains(time("ptxas", "--graph").out, "10 of 10 statements"));
  const auto table = nlohmann::json::parse(time("off").out).at("launches").at(0).at("instructions");
  EXPECT_EQ(table.at("from"), "table");
  EXPECT_EQ(table.at("counted"), 0);
}

TEST_F(ProgramWithTools, AToolThatFailsIsAnErrorOrANote) {
  tool("ptxas", "echo 'ptxas fatal   : no such target' >&2; exit 3");
  const std::string reason = "ptxas -arch=sm_90a -lineinfo --entry twice -o ";
  const Outcome asked = time("ptxas");
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_TRUE(contains(asked.err, reason)) << asked;
  EXPECT_TRUE(contains(asked.err, "exit status 3: ptxas fatal   : no such target")) << asked;
  const Outcome automatic = time("auto");
  ASSERT_EQ(automatic.exit_code, 0) << automatic;
  const auto counts = nlohmann::json::parse(automatic.out).at("launches").at(0).at("instructions");
  EXPECT_EQ(counts.at("from"), "table");
  EXPECT_TRUE(contains(counts.at("note").get<std::string>(), "exit status 3")) << automatic;
  EXPECT_TRUE(contains(time("auto", "--graph").out, "instructions are the table's: --sass: "));
}

TEST_F(ProgramWithTools, WhatIsNoListingIsRefused) {
  tool("nvdisasm", "echo nothing");
  expect_refused(time("ptxas"), "", "nvdisasm: no instruction with its line of PTX");
  write("k.sass", "nothing");
  expect_refused(time("k.sass"), "", "k.sass: no instruction with its line of PTX");
  expect_refused(time("none.sass"), "none.sass", "cannot read");
}

TEST_F(Program, WhatCannotBeTimedIsRefused) {
  write("l.json", kLaunch);
  expect_refused(start({"time"}), "", "time needs a kernel or --launch, and not both");
  expect_refused(start({"time", "k.ptx", "--launch", "l.json"}), "", "and not both");
  expect_refused(start({"time", "--launch", "l.json", "--gpu", "b100"}), "",
                 "--gpu: 'b100'; must be one of a100, b200, gb10, gb300, h100, h200, l40s, "
                 "rtx4090, rtx5090, or a file");
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
