// Help that teaches, and wrong requests: exit code 2, a message on stderr that names option, value
// and rule, nothing on stdout, nothing written.
#include <algorithm>

#include "checkpoint/conventions.hpp"
#include "run_program.hpp"

namespace dualgemm::test {
namespace {

using Usage = CliTest;

struct HelpCase {
  const char* command;
  const char* part;
};

TEST_F(Usage, ProgramHelpExplainsStrategiesAndExitCodes) {
  const ProgramResult help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* part :
       {"alpha_gate", "two_pass", "fused_epilogue", "oracle", "First steps", "0 ok",
        "1 the operation failed", "2 the request is wrong", "info", "plan", "quantize", "convert",
        "run", "verify", "bench", "validate", "make-layer"}) {
    EXPECT_TRUE(contains(help.out, part));
  }
}

TEST_F(Usage, EveryCommandHasHelpWithExamples) {
  const HelpCase cases[] = {{"info", "GB/s"},       {"plan", "rejected"},
                            {"make-layer", "seed"}, {"quantize", "amax/(6*448)"},
                            {"convert", "ggml"},    {"run", "W4A16"},
                            {"verify", "oracle"},   {"bench", "4*M*N*K*L"},
                            {"validate", "NaN"}};
  for (const HelpCase& item : cases) {
    const ProgramResult help = run({item.command, "--help"});
    EXPECT_EQ(help.exit_code, 0) << item.command;
    EXPECT_EQ(help.err, "") << item.command;
    EXPECT_TRUE(contains(help.out, item.part));
    EXPECT_TRUE(contains(help.out, std::string("  dualgemm ") + item.command)) << "no example";
  }
}

TEST_F(Usage, VersionOnStdout) {
  const ProgramResult result = run({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.rfind("dualgemm ", 0), 0u) << result;
}

struct BadCase {
  std::vector<std::string> arguments;
  std::vector<std::string> parts;  // of stderr
};

TEST_F(Usage, WrongRequestsAreRefused) {
  const std::vector<BadCase> cases = {
      {{}, {"command: none", "make-layer", "dualgemm help"}},
      {{"frobnicate"}, {"frobnicate", "make-layer"}},
      {{"vrify"}, {"'vrify'", "did you mean verify?"}},
      {{"--jsn"}, {"--jsn", "before a command"}},
      {{"plan", "--k", "64", "--m"}, {"--m: no value; needs one"}},
      {{"plan", "--", "x"}, {"x"}},
      {{"info", "--frobnicate"}, {"info: --frobnicate; is no option", "dualgemm help info"}},
      {{"plan", "--thread", "3"}, {"plan: --thread;", "did you mean --threads?"}},
      {{"plan", "--stratgy=fused"}, {"--stratgy", "did you mean --strategy?"}},
      {{"plan", "--zeta", "--alpha", "--mid"}, {"--zeta, --alpha, --mid"}},
      {{"plan", "one", "two"}, {"plan: 'one'; takes no further argument"}},
      {{"quantize", "in.npy", "--uot", "o"}, {"--uot", "did you mean --out?"}},
      {{"help", "bnech"}, {"'bnech'", "did you mean bench?"}},
      {{"completion"}, {"shell"}},
      {{"completion", "bas"}, {"'bas'", "did you mean bash?"}},
      {{"plan", "--color", "sometimes"}, {"'sometimes'", "auto, always or never"}},
      {{"plan", "--act", "gelu_tan"}, {"gelu_tan", "did you mean gelu_tanh?"}},
      {{"plan", "--isa", "avx512"}, {"did you mean avx512_vnni?"}},
      {{"verify", "--strategy", "fused,twopass"}, {"did you mean two_pass?"}},
      {{"verify", "--strategy", "fused,foo"},
       {"'foo'; must be all, or some of reference, two_pass"}},
      {{"verify", "--strategy", "all,fused"}, {"'all'; must stand alone\n"}},
      {{"verify", "--strategy", "fused,fused"}, {"'fused'; is named twice\n"}},
      {{"verify", "--bar", "x", "--baz"},
       {"--bar, --baz; are no options of it; did you mean --bias?"}},
      {{"verify", "--device", "gpu"}, {"did you mean cuda?"}},
      {{"plan", "--act", "gleu"}, {"did you mean gelu_erf?"}},
      {{"quantize", "w", "--out", "o", "--convention", "ggmll"},
       {"'ggmll'; must be " + checkpoint::names_of(checkpoint::is_target) +
        "; did you mean ggml?"}},
      {{"plan", "--device", "h20"}, {"'h20'", "did you mean h200?"}},
      {{"run", "w", "--activations", "a", "--device", "h200"}, {"\"h200\"", "must be one of"}},
      {{"run", "w", "--activations", "a", "--device", "cud"}, {"did you mean cuda?"}},
      {{"bench", "--isa", "sm80", "--device", "cpu"}, {"isa: sm80"}},
      {{"verify", "--isa", "sm80", "--device", "cpu"}, {"isa: sm80"}},
      {{"plan", "--m"}, {"--m"}},
      {{"plan", "--m", "abc"}, {"--m", "'abc'", "whole number"}},
      {{"plan", "--m", "12x"}, {"'12x'"}},
      {{"plan", "--m", ""}, {"''"}},
      {{"plan", "--m", "-5"}, {"'-5'", "at least 1"}},
      {{"plan", "--m", "0"}, {"'0'", "at least 1"}},
      {{"plan", "--m", "0x10"}, {"'0x10'"}},
      {{"plan", "--m", "99999999999999999999"}, {"99999999999999999999", "does not fit"}},
      {{"plan", "--m", "1", "--m", "2"}, {"--m"}},
      {{"plan", "--k", "17"}, {"k: 17", "multiple of 16"}},
      {{"plan", "--m", "9223372036854775807"}, {"9223372036854775807"}},
      {{"plan", "--act", "silly"}, {"silly", "gelu_tanh"}},
      {{"plan", "--act-alpha", "2"}, {"alpha"}},
      {{"plan", "--act", "swiglu_oai", "--act-limit", "nan"}, {"'nan'"}},
      {{"plan", "--isa", "avx9"}, {"avx9", "avx512_vnni"}},
      {{"plan", "--strategy", "magic"}, {"magic", "two_pass"}},
      {{"plan", "--threads", "-1"}, {"'-1'"}},
      {{"plan", "--threads", "5000"}, {"4096"}},
      {{"plan", "--d-type", "e2m1", "--n", "17"}, {"n: 17"}},
      {{"plan", "--config", "tile_m=8"}, {"--config: 'tile_m=8'; needs --device cuda"}},
      {{"run", "w", "--activations", "a", "--config", "tile_m=8"}, {"--config", "--device cuda"}},
      {{"verify", "--device", "cpu", "--config", "x"}, {"--config: 'x'; needs --device cuda"}},
      {{"bench", "--config", "tile_m=8"}, {"--config", "--device cuda"}},
      {{"plan", "--device", "cuda", "--config", "tile_q=8"}, {"config: 'tile_q'", "tile_m"}},
      {{"plan", "--device", "cuda", "--config", "tile_m=x"}, {"config: 'tile_m=x'", "number"}},
      {{"plan", "--device", "cuda", "--config", "cpu_avx2_fused_p2"}, {"is for the CPU"}},
      {{"plan", "--device", "cuda", "--config", "cuda_fused"}, {"config: 'cuda_fused'"}},
      {{"verify", "--device", "cuda", "--strategy", "fused,two_pass", "--config", "tile_m=8"},
       {"--config: 2 strategies; is for one"}},
      {{"bench", "--device", "cuda", "--strategy", "all", "--config", "tile_m=8"}, {"for one"}},
      {{"quantize"}, {"input"}},
      {{"quantize", "in.npy"}, {"--out"}},
      {{"quantize", "in.npy", "--out", "o", "--global-scale", "0"}, {"--global-scale", "above 0"}},
      {{"quantize", "in.npy", "--out", "o", "--global-scale", "1e-300"}, {"32-bit"}},
      {{"quantize", "in.npy", "--out", "o", "--convention", "plain"}, {"plain"}},
      {{"convert", "in", "--out", "o", "--nibble-order", "odd"}, {"odd"}},
      {{"make-layer", "--out", "o.safetensors", "--type", "e2m1"}, {"e2m1"}},
      {{"make-layer", "--out", "o.txt"}, {".npy or .safetensors"}},
      {{"make-layer", "--out", "o.safetensors", "--k", "20"}, {"k: 20"}},
      {{"run", "w.safetensors"}, {"--activations"}},
      {{"run", "w", "--activations", "a", "--out", "d.txt"}, {".npy or .safetensors"}},
      {{"run", "w", "--activations", "a", "--out", "d.npy", "--d-type", "e2m1"}, {"safetensors"}},
      {{"run", "w", "--activations", "a", "--d-global-scale", "2"}, {"--d-global-scale", "e2m1"}},
      {{"run", "w", "--activations", "a", "--quantize-h"}, {"--quantize-h", "only with --mlp"}},
      {{"run", "w", "--activations", "a", "--mlp", "--h-global-scale", "2"},
       {"only with --quantize-h"}},
      {{"run", "w", "--activations", "a", "--mlp", "--a-type", "f32"}, {"X is f16 or bf16"}},
      {{"run", "w", "--activations", "a", "--mlp", "--a-type", "e2m1"}, {"--quantize-x makes"}},
      {{"run", "w", "--activations", "a", "--mlp", "--d-type", "e2m1"}, {"Y is f16"}},
      {{"run", "w", "--activations", "a", "--mlp", "--layout", "swizzled_128x4"}, {"itself"}},
      {{"run", "w", "--activations", "a", "--mlp", "--bias", "f32"}, {"brings its own"}},
      {{"run", "w", "--activations", "a", "--mlp", "--strategy", "fused"}, {"choose theirs"}},
      {{"verify", "--weights", "w"}, {"--activations"}},
      {{"verify", "--weights", "w", "--activations", "a", "--m", "4"},
       {"the files determine the shape"}},
      {{"verify", "--m", "5:1"}, {"5:1"}},
      {{"verify", "--m", "1:2:3:4"}, {"range"}},
      {{"verify", "--m", "1,,2"}, {"''"}},
      {{"verify", "--m", "1:9223372036854775807"}, {"4096"}},
      {{"verify", "--m", "1:100", "--n", "1:100"}, {"combinations"}},
      {{"verify", "--k", "24"}, {"k: 24"}},
      {{"verify", "--strategy", "fused,fused"}, {"twice"}},
      {{"verify", "--seed", "-1"}, {"--seed"}},
      {{"bench", "--json", "--csv"}, {"stdout"}},
      {{"bench", "--min-rounds", "5", "--max-rounds", "4"}, {"--max-rounds"}},
      {{"bench", "--seconds", "inf"}, {"--seconds"}},
      {{"bench", "--k", "8"}, {"k: 8"}},
  };
  for (const BadCase& item : cases) {
    std::string line = "dualgemm";
    for (const std::string& argument : item.arguments) line += " '" + argument + "'";
    SCOPED_TRACE(line);
    const ProgramResult result = run(item.arguments);
    EXPECT_EQ(result.exit_code, 2) << result;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("dualgemm: ", 0), 0u) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& part : item.parts) EXPECT_TRUE(contains(result.err, part));
  }
  EXPECT_TRUE(files().empty());
}

// One line and 2, as `plan` and `run` answer: nothing is measured or skipped one by one first.
TEST_F(Usage, BadEnvironmentIsRefusedBeforeAnyWork) {
  make_layer();
  quantize();
  std::vector<std::vector<std::string>> commands = {
      {"info", "--no-peaks"},
      {"plan"},
      {"run", path("q.safetensors"), "--activations", path("x.npy")},
      {"verify"},
      {"verify", "--weights", path("q.safetensors"), "--activations", path("x.npy")},
      {"bench"}};
  const auto refused = [this](const std::vector<std::string>& arguments, const std::string& set,
                              const std::string& message) {
    const ProgramResult result = run(arguments, {set});
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << "\n" << result;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("dualgemm: " + message, 0), 0u) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  for (const auto& arguments : commands)
    refused(arguments, "DUALGEMM_FORCE_ISA=foo", "DUALGEMM_FORCE_ISA: \"foo\"");
  // Not instruction sets, but threads are what these take of the machine.
  commands.push_back({"quantize", path("layer.safetensors"), "--out", path("o.safetensors"),
                      "--calibrate", path("x.npy")});
  commands.push_back({"make-layer", "--out", path("o.safetensors")});
  for (const auto& arguments : commands) {
    refused(arguments, "DUALGEMM_NUM_THREADS=many", "DUALGEMM_NUM_THREADS: 'many'");
    // No word of another library before ours.
    refused({arguments}, "OMP_NUM_THREADS=-1", "OMP_NUM_THREADS: '-1'");
  }
  EXPECT_EQ(files(), (std::vector<std::string>{"layer.safetensors", "q.safetensors", "x.npy"}));
}

// Without a GPU, on one that has no kernel, or in a build without CUDA: one line that says which.
TEST_F(Usage, DeviceThatIsNotThereIsRefusedBeforeAnyWork) {
  if (run({"plan", "--device", "cuda"}).exit_code == 0) {
    GTEST_SKIP() << "this machine has a GPU that the kernels run on";
  }
  const std::vector<std::vector<std::string>> commands = {
      {"plan", "--device", "cuda"}, {"verify", "--device", "cuda"}, {"bench", "--device", "cuda"}};
  for (const auto& arguments : commands) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("dualgemm: device: ", 0), 0u) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(Usage, FullDiskOnStdoutIsAFailure) {
  const ProgramResult result = run({"plan", "--m", "4", "--n", "32", "--k", "64"}, {}, "/dev/full");
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "stdout"));
}

}  // namespace
}  // namespace dualgemm::test
