// make-layer, quantize, convert, run, validate: what they write, what they refuse, and that a
// failure leaves nothing behind.
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "run_program.hpp"

namespace dualgemm::test {
namespace {

using nlohmann::json;
using Files = CliTest;
using Names = std::vector<std::string>;

checkpoint::TensorFile open(const std::string& path) {
  Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? *file : checkpoint::TensorFile();
}

TEST_F(Files, MakeLayerIsReproducible) {
  make_layer();
  const std::string first = read_text(path("layer.safetensors")),
                    activations = read_text(path("x.npy"));
  make_layer();
  EXPECT_EQ(first, read_text(path("layer.safetensors")));
  EXPECT_EQ(activations, read_text(path("x.npy")));
  const checkpoint::TensorFile layer = open(path("layer.safetensors"));
  const checkpoint::TensorView* gate = layer.find("model.layers.0.mlp.gate_proj.weight");
  ASSERT_NE(gate, nullptr);
  EXPECT_EQ(gate->shape, (std::vector<int64_t>{48, 64}));
  EXPECT_EQ(gate->dtype, checkpoint::ElementType::kBF16);
  EXPECT_EQ(files(), (Names{"layer.safetensors", "x.npy"}));
}

TEST_F(Files, MakeLayerMakesWholeLayersAndExperts) {
  const std::string one = path("one.safetensors"), many = path("many.safetensors");
  ASSERT_EQ(run({"make-layer", "--out", one, "--n", "48", "--k", "64", "--mlp"}).exit_code, 0);
  const checkpoint::TensorFile layer = open(one);
  const checkpoint::TensorView* down = layer.find("model.layers.0.mlp.down_proj.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->shape, (std::vector<int64_t>{64, 48}));
  ASSERT_EQ(run({"make-layer", "--out", many, "--n", "48", "--k", "64", "--mlp", "--experts", "3",
                 "--stacked"})
                .exit_code,
            0);
  const checkpoint::TensorFile experts = open(many);
  EXPECT_EQ(experts.tensors().size(), 6u);
  for (const char* name : {"0.gate_up_proj", "2.gate_up_proj", "0.down_proj", "2.down_proj"}) {
    EXPECT_TRUE(experts.contains(std::string("model.layers.0.mlp.experts.") + name + ".weight"));
  }
  const ProgramResult odd = run({"make-layer", "--out", one, "--n", "40", "--k", "64", "--mlp"});
  EXPECT_EQ(odd.exit_code, 2) << odd;
  EXPECT_TRUE(contains(odd.err, "n: 40; must be a multiple of 16 with --mlp"));
}

TEST_F(Files, QuantizeWritesModelOptAndReportsErrors) {
  make_layer();
  const ProgramResult result =
      run({"quantize", path("layer.safetensors"), "--out", path("q.safetensors"), "--calibrate",
           path("x.npy"), "--check"});
  ASSERT_EQ(result.exit_code, 0) << result;
  for (const char* part :
       {"gate_proj.weight", "up_proj.weight", "rel L2", "SNR dB", "clipped %", "to zero %"}) {
    EXPECT_TRUE(contains(result.out, part));
  }
  const checkpoint::TensorFile file = open(path("q.safetensors"));
  const std::string module = "model.layers.0.mlp.gate_proj";
  for (const char* suffix : {".weight", ".weight_scale", ".weight_scale_2", ".input_scale"}) {
    EXPECT_TRUE(file.contains(module + suffix)) << suffix;
  }
}

TEST_F(Files, QuantizeReportAsJson) {
  make_layer();
  const ProgramResult result = run(
      {"quantize", path("layer.safetensors"), "--out", path("q.safetensors"), "--check", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result;
  const json report = json::parse(result.out);
  ASSERT_EQ(report["quantized"].size(), 2u);
  const double rel_l2 = report["quantized"][0]["error"]["rel_l2"];
  EXPECT_GT(rel_l2, 0.02);  // 4 bits cannot do better on normal values,
  EXPECT_LT(rel_l2, 0.2);   // and a wrong scale or order would be near 1
}

TEST_F(Files, FourOverSixLowersTheError) {
  make_layer();
  const auto error_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "quantize", path("layer.safetensors"), "--out", path("q.safetensors"), "--check", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result;
    return json::parse(result.out)["quantized"][0]["error"]["mean_abs"].get<double>();
  };
  EXPECT_LT(error_with({"--four-over-six"}), error_with({}));
}

TEST_F(Files, ConventionsAndLayoutsGiveTheSameResult) {
  make_layer();
  quantize();
  const auto result_of = [&](const std::string& weights) {
    const ProgramResult result = run({"run", path(weights), "--activations", path("x.npy"),
                                      "--d-type", "f32", "--out", path("d.npy"), "--check"});
    EXPECT_EQ(result.exit_code, 0) << result;
    EXPECT_TRUE(contains(result.out, "ok, 240 elements within the bound, the worst"));
    return read_text(path("d.npy"));
  };
  const std::string expected = result_of("q.safetensors");
  const auto convert = [&](const std::string& from, const std::string& to,
                           const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"convert", path(from), "--out", path(to)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run(arguments);
    ASSERT_EQ(result.exit_code, 0) << result;
    EXPECT_TRUE(contains(result.err, "2 weights converted"));
  };
  convert("q.safetensors", "swizzled.safetensors", {"--scale-layout", "swizzled_128x4"});
  EXPECT_EQ(result_of("swizzled.safetensors"), expected);
  convert("swizzled.safetensors", "high.safetensors", {"--nibble-order", "high-even"});
  EXPECT_EQ(result_of("high.safetensors"), expected);
  convert("high.safetensors", "blocks.safetensors", {"--to", "ggml"});
  EXPECT_EQ(result_of("blocks.safetensors"), expected);
  convert("blocks.safetensors", "back.safetensors", {"--from", "ggml", "--to", "modelopt"});
  EXPECT_EQ(read_text(path("back.safetensors")), read_text(path("q.safetensors")));
}

TEST_F(Files, ConvertRefusesTheWrongConventionAndNothingToConvert) {
  make_layer();
  quantize();
  const Names before = files();
  ProgramResult result = run({"convert", path("q.safetensors"), "--from", "compressed-tensors",
                              "--out", path("o.safetensors")});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "compressed_tensors"));
  result =
      run({"convert", path("layer.safetensors"), "--to", "ggml", "--out", path("o.safetensors")});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "no NVFP4 weight"));
  EXPECT_EQ(files(), before);
}

TEST_F(Files, RunWritesEveryOutputType) {
  make_layer();
  quantize({"--calibrate", path("x.npy")});
  for (const char* type : {"f16", "bf16", "f32"}) {
    const ProgramResult result =
        run({"run", path("q.safetensors"), "--prefix", "model.layers.0.mlp", "--activations",
             path("x.npy"), "--d-type", type, "--out", path("d.safetensors"), "--check"});
    ASSERT_EQ(result.exit_code, 0) << type << "\n" << result;
    EXPECT_TRUE(contains(result.err, "input scale"));
    const checkpoint::TensorFile file = open(path("d.safetensors"));
    const checkpoint::TensorView* d = file.find("d");
    ASSERT_NE(d, nullptr) << type;
    EXPECT_EQ(d->shape, (std::vector<int64_t>{5, 48}));
  }
  const ProgramResult result =
      run({"run", path("q.safetensors"), "--activations", path("x.npy"), "--d-type", "e2m1",
           "--d-global-scale", "0.01", "--out", path("d4.safetensors"), "--check", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_EQ(json::parse(result.out)["check"]["passed"], true);
  const checkpoint::TensorFile file = open(path("d4.safetensors"));
  const Expected<checkpoint::Weight> d = checkpoint::load_weight(file, "d");
  ASSERT_TRUE(d.ok()) << d.status().message();
  EXPECT_EQ(d->n, 5);
  EXPECT_EQ(d->k, 48);
  // What was written can be the next run's input: K is 48 there.
  ASSERT_EQ(
      run({"make-layer", "--out", path("next.safetensors"), "--n", "32", "--k", "48"}).exit_code,
      0);
  ASSERT_EQ(run({"quantize", path("next.safetensors"), "--out", path("nq.safetensors")}).exit_code,
            0);
  const ProgramResult chained =
      run({"run", path("nq.safetensors"), "--activations", path("d4.safetensors"), "--check"});
  EXPECT_EQ(chained.exit_code, 0) << chained;
  EXPECT_TRUE(contains(chained.err, "NVFP4 already"));
}

TEST_F(Files, RunWithWideActivations) {
  make_layer();
  quantize();
  for (const char* type : {"bf16", "f16", "f32"}) {
    const ProgramResult result = run({"run", path("q.safetensors"), "--activations", path("x.npy"),
                                      "--a-type", type, "--check", "--out", path("d.npy")});
    EXPECT_EQ(result.exit_code, 0) << type << "\n" << result;
  }
}

TEST_F(Files, StackedLayerRuns) {
  ASSERT_EQ(run({"make-layer", "--out", path("s.safetensors"), "--activations", path("x.npy"),
                 "--stacked", "--n", "32", "--k", "64", "--m", "3"})
                .exit_code,
            0);
  ASSERT_EQ(run({"quantize", path("s.safetensors"), "--out", path("q.safetensors"), "--convention",
                 "compressed-tensors"})
                .exit_code,
            0);
  const ProgramResult result =
      run({"run", path("q.safetensors"), "--activations", path("x.npy"), "--check"});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.out, "compressed_tensors, stacked"));
}

TEST_F(Files, FailuresSayWhyAndLeaveNothing) {
  make_layer();
  quantize();
  write_text("junk.safetensors", "this is no safetensors file");
  write_text("short.npy", read_text(path("x.npy")).substr(0, 200));
  const Names before = files();
  struct Case {
    std::vector<std::string> arguments;
    const char* part;
  };
  const std::vector<Case> cases = {
      {{"quantize", path("missing.npy"), "--out", path("o.safetensors")}, "missing.npy"},
      {{"quantize", path("junk.safetensors"), "--out", path("o.safetensors")}, "junk.safetensors"},
      {{"quantize", path("short.npy"), "--out", path("o.safetensors")}, "short.npy"},
      {{"quantize", path("q.safetensors"), "--out", path("o.safetensors")}, "none to quantise"},
      {{"quantize", path("layer.safetensors"), "--tensor", "model.layers.0.mlp.gate_pro.weight",
        "--out", path("o.safetensors")},
       "gate_proj.weight"},  // the near name
      {{"quantize", path("layer.safetensors"), "--out", path("no/such/dir/o.safetensors")},
       "no/such/dir"},
      {{"run", path("q.safetensors"), "--prefix", "model.layers.1.mlp", "--activations",
        path("x.npy"), "--out", path("o.npy")},
       "model.layers.0.mlp"},
      {{"run", path("layer.safetensors"), "--activations", path("x.npy"), "--out", path("o.npy")},
       "dualgemm quantize"},
      {{"run", path("q.safetensors"), "--activations", path("short.npy"), "--out", path("o.npy")},
       "short"},
      {{"run", path("q.safetensors"), "--activations", path("x.npy"), "--out",
        path("no/such/dir/o.npy")},
       "no/such/dir"},
      {{"convert", path("junk.safetensors"), "--out", path("o.safetensors")}, "junk.safetensors"},
      {{"validate", path("junk.safetensors")}, "junk.safetensors"},
      {{"verify", "--weights", path("q.safetensors"), "--activations", path("missing.npy")},
       "missing.npy"},
      {{"bench", "--m", "4", "--n", "32", "--k", "64", "--json", path("no/such/dir/o.json")},
       "no/such/dir"},
  };
  for (const Case& item : cases) {
    std::string line = "dualgemm";
    for (const std::string& argument : item.arguments) line += " '" + argument + "'";
    SCOPED_TRACE(line);
    const ProgramResult result = run(item.arguments);
    EXPECT_EQ(result.exit_code, 1) << result;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, item.part));
    EXPECT_EQ(result.err.find("device auto"), std::string::npos) << "said of what did not run";
    EXPECT_EQ(files(), before);
  }
}

TEST_F(Files, FullDiskLeavesTheOldFile) {
  make_layer();
  write_text("q.safetensors", "precious");
  const Names before = files();
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = old;
  small.rlim_cur = 1024;  // children inherit it; SIGXFSZ is ignored so that they see EFBIG
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const ProgramResult result =
      run({"quantize", path("layer.safetensors"), "--out", path("q.safetensors")});
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_EQ(read_text(path("q.safetensors")), "precious");
  EXPECT_EQ(files(), before);
}

TEST_F(Files, NanInWeightsIsNamed) {
  std::string header = R"({"w.weight":{"dtype":"F32","shape":[1,16],"data_offsets":[0,64]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  file += header + std::string(64, '\0');
  const uint32_t nan = 0x7FC00000;
  file.replace(file.size() - 4, 4, reinterpret_cast<const char*>(&nan), 4);
  write_text("nan.safetensors", file);
  const ProgramResult result =
      run({"quantize", path("nan.safetensors"), "--out", path("o.safetensors")});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "w.weight"));
  EXPECT_TRUE(contains(result.err, "15"));  // the column
  EXPECT_EQ(files(), (Names{"nan.safetensors"}));
}

TEST_F(Files, ValidateReportsBadScalesOnlyWhenStrict) {
  make_layer();
  quantize();
  ProgramResult result = run({"validate", path("q.safetensors"), "--strict"});
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "sound"));

  std::string bytes = read_text(path("q.safetensors"));
  const checkpoint::TensorFile file = open(path("q.safetensors"));
  const checkpoint::TensorView* scales = file.find("model.layers.0.mlp.up_proj.weight_scale");
  ASSERT_NE(scales, nullptr);
  const std::string wanted(reinterpret_cast<const char*>(scales->data.data()), scales->data.size());
  const size_t at = bytes.find(wanted);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 5] = '\x7F';  // NaN in row 1 (4 blocks a row), block 1
  bytes[at + 9] = static_cast<char>(bytes[at + 9] | 0x80);  // negative
  write_text("bad.safetensors", bytes);

  EXPECT_EQ(run({"validate", path("bad.safetensors")}).exit_code, 1);
  result = run({"validate", path("bad.safetensors"), "--json", "--allow-nan"});
  EXPECT_EQ(result.exit_code, 0) << result;
  json report = json::parse(result.out);
  EXPECT_EQ(report["layers"][0]["up_scales"]["nan"], 1);
  EXPECT_EQ(report["layers"][0]["up_scales"]["negative"], 1);
  EXPECT_EQ(report["layers"][0]["gate_scales"]["nan"], 0);
  result = run({"validate", path("bad.safetensors"), "--strict"});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "row 1, block 1"));
}

}  // namespace
}  // namespace dualgemm::test
