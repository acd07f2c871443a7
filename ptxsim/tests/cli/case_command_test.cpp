// `ptxsim case`: the file that it writes runs as it stands; nothing is overwritten unasked.
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace {

using namespace ptxsim_test;

TEST_F(Program, WritesACaseThatRuns) {
  const Outcome outcome = start({"case", "k.ptx"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(contains(outcome.out, "case.json: entry twice, 2 parameters, 2 buffers; 3 comments"));
  const Outcome ran = start({"run", "k.ptx", "--case", "case.json", "--schedule", "all"});
  EXPECT_EQ(ran.exit_code, 0) << ran;
  const auto json = nlohmann::json::parse(read("case.json"));
  EXPECT_EQ(json.at("params").at(1).at("buffer"), "out");
  EXPECT_EQ(json.at("buffers").at(0).at("type"), "u32");
}

TEST_F(Program, ACaseThatIsThereIsKept) {
  expect_refused(start({"case", "k.ptx", "--out", "c.json"}), "",
                 "--out: 'c.json' is there already; --force overwrites it");
  EXPECT_EQ(read("c.json"), kCase);
  EXPECT_EQ(start({"case", "k.ptx", "--out", "c.json", "--force"}).exit_code, 0);
  EXPECT_NE(read("c.json"), kCase);
}

TEST_F(Program, ACaseGoesToStdout) {
  const Outcome outcome = start({"case", "k.ptx", "--out", "-"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("entry"), "twice");
  EXPECT_FALSE(std::filesystem::exists(path("case.json")));
}

TEST_F(Program, ACaseThatCannotBeWrittenIsAnError) {
  expect_refused(start({"case", "k.ptx", "--out", "none/c.json"}), "",
                 "--out: 'none/c.json' cannot be written: No such file or directory");
  expect_refused(start({"case", "k.ptx", "--entry", "thrice"}), "k.ptx",
                 "entry 'thrice' is not in the module; it has: twice");
  write("k.ptx", replaced(kKernel, "mul.wide.u32", "frobnicate.u32"));
  expect_refused(start({"case", "k.ptx"}), "k.ptx:11", "unknown instruction");
}

struct OtherFile {
  const char* name;
  std::string contents;
  const char* reason;
};
void PrintTo(const OtherFile& file, std::ostream* out) { *out << file.name; }

class NotPtx : public Program, public testing::WithParamInterface<OtherFile> {};

TEST_P(NotPtx, IsNamed) {
  write("k.ptx", GetParam().contents);
  for (const char* command : {"run", "check", "case", "mutate"})
    expect_refused(start({command, "k.ptx"}), "k.ptx", GetParam().reason);
}

std::string elf(char machine) {
  std::string text("\177ELF", 4);
  text.resize(64);
  text[18] = machine;
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Files, NotPtx,
    testing::Values(OtherFile{"Elf", elf(62), "is not PTX but an ELF file"},
                    OtherFile{"Cubin", elf(static_cast<char>(190)), "is not PTX but a cubin (ELF)"},
                    OtherFile{"Fatbin", "\x50\xed\x55\xba and more", "is not PTX but a fatbin"},
                    OtherFile{"Archive", "!<arch>\nobject", "is not PTX but an archive"},
                    OtherFile{"Bitcode", "BC\xc0\xde", "is not PTX but LLVM bitcode"},
                    OtherFile{"Json", "{\"grid\": [1]}", "is not PTX but JSON"},
                    OtherFile{"Cuda", "// a kernel\n__global__ void k() {}\n",
                              "is not PTX but CUDA C++"},
                    OtherFile{"Llvm", "; ModuleID = 'k'\nsource_filename = \"k\"\n",
                              "is not PTX but LLVM assembly"},
                    OtherFile{"Mlir", "module {\n  tt.func @k() {}\n}\n", "is not PTX but MLIR"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Program, AMissingKernelIsNamed) {
  for (const char* command : {"run", "check", "case", "mutate"})
    expect_refused(start({command, "none.ptx"}), "none.ptx",
                   "cannot read: No such file or directory");
}

}  // namespace
