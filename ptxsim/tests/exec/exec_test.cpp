// `ptxsim exec` with a program of the driver's interface, which needs no nvcc.
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_with_tools.hpp"

namespace ptxsim_test {
namespace {

class Exec : public Program {
 protected:
  Outcome exec(const std::string& device, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"exec", "--device", device, "--", PTXSIM_DRIVER_PROGRAM};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments);
  }
};

TEST_F(Exec, LaunchesAreInterpreted) {
  const Outcome outcome = exec("b200");
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "NVIDIA B200, compute capability 10\n");
  EXPECT_TRUE(contains(outcome.err, "NVIDIA B200: 1 launches of 1 kernels"));
  EXPECT_TRUE(contains(outcome.err,
                       "the image is neither a fat binary nor PTX (cudaErrorInvalidKernelImage)"));
  EXPECT_TRUE(contains(outcome.err, "PTX of sm_121a does not run on sm_100"));
}

TEST_F(Exec, TheDeviceIsTheChosenOne) {
  EXPECT_EQ(exec("h200").out, "NVIDIA H200, compute capability 9\n");
  EXPECT_EQ(exec("rtx5090").out, "NVIDIA GeForce RTX 5090, compute capability 12\n");
}

TEST_F(Exec, MachineCodeStandsForThePtxBesideIt) {
  const Outcome outcome = start({"exec", "--ptx", ".", "--", PTXSIM_DRIVER_PROGRAM, "compiles"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, "1 launches of 1 kernels"));
}

TEST_F(Exec, MachineCodeStandsForTheKernelsOfANamedFile) {
  ASSERT_EQ(exec("b200", {"compiles"}).exit_code, 3);  // which leaves the files
  const Outcome outcome =
      start({"exec", "--ptx", "made.ptx", "--", PTXSIM_DRIVER_PROGRAM, "compiles"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, "1 launches of 1 kernels"));
}

TEST_F(Exec, MachineCodeAloneIsRefused) {
  const Outcome outcome = exec("b200", {"compiles"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_TRUE(contains(outcome.err, "the image is machine code, and --ptx names no PTX of it"));
}

TEST_F(Exec, CallsThatAreNotModelledSaySo) {
  const Outcome outcome = exec("b200", {"texture"});
  EXPECT_EQ(outcome.exit_code, 801 % 256) << outcome;
  EXPECT_TRUE(contains(outcome.err, "error: cuTexRefCreate: not modelled (cudaErrorNotSupported)"))
      << outcome;
}

// Floats, and bytes that are read as fractions.
TEST_F(Exec, TexturesOfTheDriver) {
  const Outcome outcome = exec("h100", {"textures"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "NVIDIA H100 80GB HBM3, compute capability 9\n");
  EXPECT_TRUE(contains(outcome.err, "2 launches of 1 kernels")) << outcome;
}

TEST_F(Exec, FaultsAreFindings) {
  const Outcome outcome = exec("b200", {"beyond"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.err, "is not inside a registered buffer"));
  EXPECT_TRUE(contains(outcome.err, "kernel:  add"));
}

TEST_F(Exec, ReportAsJsonInAFile) {
  const Outcome outcome =
      start({"exec", "--json", "--report", "r.json", "--", PTXSIM_DRIVER_PROGRAM});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.err, "");
  const auto report = nlohmann::json::parse(read("r.json"));
  EXPECT_EQ(report.at("device"), "b200");
  EXPECT_EQ(report.at("status"), 0);
  EXPECT_EQ(report.at("ended"), true);
  EXPECT_EQ(report.at("kernels").at(0).at("name"), "add");
}

TEST_F(Exec, LaunchesAreTimed) {
  const Outcome outcome = start({"exec", "--time", "--sass", "off", "--", PTXSIM_DRIVER_PROGRAM});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, " us each, an estimate")) << outcome;
  EXPECT_TRUE(contains(outcome.err, "\n    instructions are the table's\n")) << outcome;
  start({"exec", "--time", "--sass", "off", "--json", "--report", "t.json", "--",
         PTXSIM_DRIVER_PROGRAM});
  const auto kernel = nlohmann::json::parse(read("t.json")).at("kernels").at(0);
  EXPECT_EQ(kernel.at("timed"), kernel.at("launches"));
  // No launch takes less than the gap before it, 0.8 us, and a trifle takes no more than a few.
  const double each = kernel.at("microseconds").get<double>() / kernel.at("timed").get<double>();
  EXPECT_GT(each, 0.8);
  EXPECT_LT(each, 10);
  EXPECT_FALSE(kernel.contains("low_microseconds"));
  start({"exec", "--time", "--sass", "off", "--sample", "3", "--json", "--report", "t.json", "--",
         PTXSIM_DRIVER_PROGRAM});
  const auto sampled = nlohmann::json::parse(read("t.json")).at("kernels").at(0);
  EXPECT_LT(sampled.at("low_microseconds"), sampled.at("microseconds"));
  EXPECT_GT(sampled.at("high_microseconds"), sampled.at("microseconds"));
  EXPECT_LT(sampled.at("gap_microseconds"), sampled.at("low_microseconds"));
  EXPECT_TRUE(contains(
      start({"exec", "--time", "--sass", "off", "--device", "gb10", "--", PTXSIM_DRIVER_PROGRAM})
          .err,
      " us each, an estimate"));
}

// A file of parameters in place of the device's: a launch gap of 50 us.
TEST_F(Exec, LaunchesAreTimedWithOtherParameters) {
  auto gpu = nlohmann::json::parse(std::ifstream(PTXSIM_PARAMETERS));
  for (const char* key : {"value", "low", "high"}) gpu["parameters"]["launch_gap_us"][key] = 50;
  write("gpu.json", gpu.dump());
  const std::vector<std::string> words{"--json", "--report", "t.json", "--", PTXSIM_DRIVER_PROGRAM};
  const auto gap = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"exec", "--time", "--sass", "off"});
    options.insert(options.end(), words.begin(), words.end());
    EXPECT_EQ(start(options).exit_code, 0);
    const auto kernel = nlohmann::json::parse(read("t.json")).at("kernels").at(0);
    return kernel.at("gap_microseconds").get<double>() / kernel.at("timed").get<double>();
  };
  EXPECT_LT(gap({}), 1);
  EXPECT_NEAR(gap({"--gpu", "gpu.json"}), 50, 1e-6);
  gpu["parameters"].erase("launch_gap_us");
  write("gpu.json", gpu.dump());
  expect_refused(start({"exec", "--gpu", "gpu.json", "--", "/bin/true"}), "gpu.json:1:35",
                 "launch_gap_us");
  expect_refused(start({"exec", "--gpu", "none.json", "--", "/bin/true"}), "", "none.json");
}

// What ptxas might make of the driver program's kernel for textures; the sum is two instructions.
const std::string kFetchSass = R"(	.section	.text.fetch,"ax",@progbits
.text.fetch:
	//## File ".nv_debug_ptx_txt", line 14
        /*0000*/                   TEX.SCR.LL RZ, R2, R2, R6, 2D, 0x1 ;
	//## File ".nv_debug_ptx_txt", line 16
        /*0010*/                   IADD3 R5, R2, R2, RZ ;
        /*0020*/                   IADD3 R5, R5, RZ, RZ ;
	//## File ".nv_debug_ptx_txt", line 17
        /*0030*/                   STG.E desc[UR4][R4.64], R5 ;
        /*0040*/                   EXIT ;
)";

class ExecWithTools : public ProgramWithTools {
 protected:
  ExecWithTools() {
    write("k.sass", kFetchSass);
    tool("nvdisasm", "echo once >> disassembled; cat k.sass");
  }
  // Two launches of a kernel, of a module that is loaded anew for the second.
  Outcome exec(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"exec", "--time", "--device", "h100"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    for (const char* last : {"--", PTXSIM_DRIVER_PROGRAM, "textures"}) arguments.push_back(last);
    return start(arguments);
  }
  nlohmann::json counts(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--json", "--report", "t.json"});
    const Outcome outcome = exec(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_EQ(outcome.err, "");
    const auto kernel = nlohmann::json::parse(read("t.json")).at("kernels").at(0);
    EXPECT_EQ(kernel.at("name"), "fetch");
    EXPECT_EQ(kernel.at("timed"), 2);
    return kernel.at("instructions");
  }
};

TEST_F(ExecWithTools, EachKernelIsCountedOnce) {
  const auto told = counts();
  EXPECT_EQ(told.at("from"), "ptxas");
  EXPECT_EQ(told.at("note"), "");
  EXPECT_GT(told.at("counted"), 0);
  EXPECT_EQ(read("disassembled"), "once\n");
  const std::string arguments = read("arguments");  // without LD_PRELOAD in front
  EXPECT_TRUE(arguments.starts_with("-arch=sm_80 -lineinfo --entry fetch -o ")) << arguments;
  EXPECT_EQ(std::count(arguments.begin(), arguments.end(), '\n'), 1) << arguments;
  EXPECT_TRUE(left_nothing_behind());
  const Outcome outcome = exec({"--sass", "ptxas"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, " statements have the instructions that ptxas made of them\n"));
}

// Then the system forgets how a tool has ended.
TEST_F(ExecWithTools, AProgramMayIgnoreItsChildren) {
  const std::string program = std::string("trap '' CHLD; exec ") + PTXSIM_DRIVER_PROGRAM;
  const Outcome outcome = start({"exec", "--time", "--sass", "ptxas", "--device", "h100", "--",
                                 "/bin/sh", "-c", program + " textures"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, " statements have the instructions that ptxas made of them\n"));
  EXPECT_EQ(read("disassembled"), "once\n");
}

TEST_F(ExecWithTools, TheTableServesWithoutThem) {
  EXPECT_EQ(counts({"--sass", "off"}).at("from"), "table");
  EXPECT_FALSE(std::filesystem::exists(path("arguments")));
  remove_tools();
  const auto told = counts();
  EXPECT_EQ(told.at("from"), "table");
  EXPECT_EQ(told.at("counted"), 0);
  EXPECT_EQ(told.at("note"), "no ptxas was found");
  expect_refused(exec({"--sass", "ptxas"}), "", "--sass: no ptxas in $CUDA_HOME/bin, ");
}

TEST_F(ExecWithTools, AToolThatFailsIsAnErrorOrANote) {
  tool("ptxas", "echo 'ptxas fatal   : no such target' >&2; exit 3");
  const std::string reason =
      "kernel.cubin kernel.ptx: exit status 3: ptxas fatal   : no such target";
  const auto told = counts();
  EXPECT_EQ(told.at("from"), "table");
  EXPECT_TRUE(contains(told.at("note").get<std::string>(), reason)) << told;
  const Outcome asked = exec({"--sass", "ptxas"});
  EXPECT_EQ(asked.exit_code, 1) << asked;
  EXPECT_TRUE(contains(asked.err, "error: estimate of fetch: --sass: ")) << asked;
  EXPECT_TRUE(contains(asked.err, reason)) << asked;
  EXPECT_TRUE(contains(asked.err, "2 launches or calls")) << asked;
  EXPECT_FALSE(contains(asked.err, "an estimate")) << asked;
  EXPECT_TRUE(left_nothing_behind());
}

TEST_F(Exec, ThePtxCanBeKept) {
  std::filesystem::create_directory(path("kept"));
  const Outcome outcome =
      start({"exec", "--keep-ptx", "kept", "--", PTXSIM_DRIVER_PROGRAM, "beyond"});
  EXPECT_TRUE(contains(outcome.err, "module4.ptx:")) << outcome;
  EXPECT_TRUE(contains(read("kept/module4.ptx"), ".visible .entry add("));
}

TEST_F(Exec, WarningsCountWhenStrict) {
  const Outcome outcome = start({"exec", "--strict", "--", PTXSIM_DRIVER_PROGRAM});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
}

TEST_F(Exec, ExitStatusIsTheProgrammes) {
  EXPECT_EQ(start({"exec", "--", "/bin/sh", "-c", "exit 7"}).exit_code, 7);
  const Outcome killed = start({"exec", "--", "/bin/sh", "-c", "kill -9 $$"});
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_TRUE(contains(killed.err, "ended by signal 9"));
  EXPECT_TRUE(contains(killed.err, "leaks are not known"));
  EXPECT_EQ(start({"exec", "--", "/bin/true"}).exit_code, 0);
}

TEST_F(Exec, BadUseIsRefused) {
  expect_refused(start({"exec", "--device", "k80", "--", "/bin/true"}), "",
                 "'k80'; must be one of b200, h200");
  expect_refused(start({"exec", "--", "/no/such/program"}), "", "cannot start '/no/such/program'");
  expect_refused(start({"exec"}), "", "program is required");
  expect_refused(start({"exec", "--time", "--sass", "k.sass", "--", "/bin/true"}), "", "--sass");
}

}  // namespace
}  // namespace ptxsim_test
