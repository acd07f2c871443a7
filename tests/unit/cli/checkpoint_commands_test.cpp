// quantize, convert, validate and run on models as they are: folders, shards, experts.
#include <nlohmann/json.hpp>

#include "run_program.hpp"
#include "tools/checkpoint/checkpoint.hpp"
#include "tools/checkpoint/npy.hpp"
#include "tools/checkpoint/safetensors.hpp"

namespace dualgemm::test {
namespace {

using nlohmann::json;
using Arguments = std::vector<std::string>;
using Models = CliTest;

// Two layers' worth of tensors as a sharded model in the folder `model`.
void write_model(const std::string& layer_path, const std::string& folder) {
  const Expected<checkpoint::TensorFile> layer = checkpoint::TensorFile::open(layer_path);
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  std::filesystem::create_directory(folder);
  checkpoint::TensorFile first, second;
  first.share_memory_of(*layer);
  second.share_memory_of(*layer);
  std::string map;
  for (const auto& [name, tensor] : layer->tensors()) {
    const bool is_gate = name.find("gate") != std::string::npos;
    ASSERT_TRUE((is_gate ? first : second).add(tensor).ok());
    map += (map.empty() ? "\"" : ",\"") + name + "\":\"" +
           (is_gate ? "model-1.safetensors" : "model-2.safetensors") + "\"";
  }
  const std::vector<uint16_t> head(64 * 16, 0x3F80);
  ASSERT_TRUE(second
                  .add_copy("lm_head.weight", checkpoint::ElementType::kBF16, {64, 16}, head.data(),
                            head.size() * 2)
                  .ok());
  map += ",\"lm_head.weight\":\"model-2.safetensors\"";
  ASSERT_TRUE(checkpoint::write_safetensors(folder + "/model-1.safetensors", first).ok());
  ASSERT_TRUE(checkpoint::write_safetensors(folder + "/model-2.safetensors", second).ok());
  std::ofstream(folder + "/model.safetensors.index.json") << "{\"weight_map\":{" << map << "}}";
  std::ofstream(folder + "/config.json") << R"({"model_type":"llama"})";
  std::ofstream(folder + "/tokenizer.json") << "{}";
}

TEST_F(Models, QuantizeAFolder) {
  make_layer();
  write_model(path("layer.safetensors"), path("model"));
  const ProgramResult result = run(
      {"quantize", path("model"), "--out", path("nvfp4"), "--calibrate", path("x.npy"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "left as they are: lm_head.weight"));
  const json report = json::parse(result.out);
  EXPECT_EQ(report["quantized"][0]["shares_scale"], true);
  EXPECT_EQ(report["quantized"][0]["global_scale"], report["quantized"][1]["global_scale"])
      << "gate and up lie in different shards";
  const json config = json::parse(read_text(path("nvfp4/config.json")));
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(config["quantization_config"]["quant_algo"], "NVFP4");
  EXPECT_EQ(config["quantization_config"]["ignore"], json({"lm_head"}));
  const json modelopt = json::parse(read_text(path("nvfp4/hf_quant_config.json")));
  EXPECT_EQ(modelopt["quantization"]["exclude_modules"], json({"lm_head"}));
  EXPECT_EQ(read_text(path("nvfp4/tokenizer.json")), "{}");
  const json index = json::parse(read_text(path("nvfp4/model.safetensors.index.json")));
  EXPECT_EQ(index["weight_map"]["model.layers.0.mlp.up_proj.weight_scale_2"],
            "model-2.safetensors");
  const ProgramResult ran = run({"run", path("nvfp4"), "--activations", path("x.npy"), "--check"});
  EXPECT_EQ(ran.exit_code, 0) << ran;
  // Once more: it holds a model now.
  const ProgramResult again = run({"quantize", path("model"), "--out", path("nvfp4")});
  EXPECT_EQ(again.exit_code, 2) << again;
  EXPECT_TRUE(contains(again.err, "name a new or an empty folder"));
  // A model that is quantised already has no float weights left, and its config says so.
  const ProgramResult twice = run({"quantize", path("nvfp4"), "--out", path("more")});
  EXPECT_EQ(twice.exit_code, 1) << twice;
}

// What quantize writes its readers take: a shard of embeddings only has no codes, so its metadata
// say nothing of layouts, and what a divisor may need besides stands in its own shard only.
TEST_F(Models, AShardWithoutWeightsBelongsToTheModel) {
  make_layer();
  write_model(path("layer.safetensors"), path("model"));
  json index = json::parse(read_text(path("model/model.safetensors.index.json")));
  checkpoint::TensorFile embeddings;
  const std::vector<float> values(64 * 16, 0.5f);
  ASSERT_TRUE(embeddings
                  .add_copy("a.embed_tokens.weight", checkpoint::ElementType::kF32, {64, 16},
                            values.data(), values.size() * 4)
                  .ok());
  ASSERT_TRUE(checkpoint::write_safetensors(path("model/model-0.safetensors"), embeddings).ok());
  index["weight_map"]["a.embed_tokens.weight"] = "model-0.safetensors";
  write_text("model/model.safetensors.index.json", index.dump());
  int number = 0;
  for (const Arguments& how :
       {Arguments{}, Arguments{"--scale-layout", "swizzled_128x4"},
        Arguments{"--convention", "compressed_tensors", "--separate-scales"},
        Arguments{"--convention", "compressed_tensors", "--scale-layout", "swizzled_128x4"},
        Arguments{"--convention", "ggml"}}) {
    const std::string out = path("out" + std::to_string(number++));
    Arguments quantize = {"quantize", path("model"), "--out", out};
    quantize.insert(quantize.end(), how.begin(), how.end());
    const ProgramResult written = run(quantize);
    ASSERT_EQ(written.exit_code, 0) << written;
    for (const ProgramResult& read :
         {run({"validate", out}), run({"run", out, "--activations", path("x.npy"), "--check"}),
          run({"convert", out, "--out", path("c.safetensors"), "--to", "modelopt"})}) {
      EXPECT_EQ(read.exit_code, 0) << read;
    }
  }
}

// Refused before the weights are computed, not when they are written.
TEST_F(Models, BrokenTargetsAndConfigsAreRefused) {
  make_layer();
  write_model(path("layer.safetensors"), path("model"));
  std::filesystem::create_symlink("nowhere", path("dangling"));
  const ProgramResult dangling = run({"quantize", path("model"), "--out", path("dangling")});
  EXPECT_NE(dangling.exit_code, 0);
  EXPECT_TRUE(contains(dangling.err, "a link to no folder")) << dangling;
  EXPECT_FALSE(std::filesystem::exists(path("nowhere")));
  write_text("model/config.json", "");
  const ProgramResult empty = run({"quantize", path("model"), "--out", path("out")});
  EXPECT_EQ(empty.exit_code, 1) << empty;
  EXPECT_TRUE(contains(empty.err, "config.json: 0 bytes; must hold JSON"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

// A file gets the model's configs beside it; those of another model are not lost to them.
TEST_F(Models, AFileBesideAnotherConfigIsRefused) {
  make_layer();
  write_model(path("layer.safetensors"), path("model"));
  std::filesystem::create_directory(path("free"));
  const ProgramResult result =
      run({"quantize", path("model"), "--out", path("free/q.safetensors")});
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "config.json"));
  EXPECT_TRUE(std::filesystem::exists(path("free/hf_quant_config.json")));
  for (const char* name : {"config.json", "hf_quant_config.json"}) {
    std::filesystem::create_directory(path("taken"));
    write_text(std::string("taken/") + name, "mine");
    const ProgramResult refused =
        run({"quantize", path("model"), "--out", path("taken/q.safetensors")});
    EXPECT_EQ(refused.exit_code, 2) << refused;
    EXPECT_TRUE(contains(refused.err, std::string("the model's ") + name + " would replace"));
    EXPECT_EQ(read_text(path(std::string("taken/") + name)), "mine");
    EXPECT_FALSE(std::filesystem::exists(path("taken/q.safetensors")));
    std::filesystem::remove_all(path("taken"));
  }
}

TEST_F(Models, TheInputIsNeverTheOutput) {
  make_layer();
  quantize();
  write_model(path("layer.safetensors"), path("model"));
  std::filesystem::create_symlink(path("layer.safetensors"), path("link.safetensors"));
  const std::string layer = read_text(path("layer.safetensors")),
                    q = read_text(path("q.safetensors")), x = read_text(path("x.npy")),
                    shard = read_text(path("model/model-1.safetensors"));
  const std::vector<std::vector<std::string>> cases = {
      {"quantize", path("layer.safetensors"), "--out", path("layer.safetensors")},
      {"quantize", path("layer.safetensors"), "--out", path("link.safetensors")},
      {"quantize", path("layer.safetensors"), "--out", path("./layer.safetensors")},
      {"quantize", path("model"), "--out", path("model")},
      {"quantize", path("model"), "--out", path("model/../model")},
      {"quantize", path("model"), "--out", path("model/model-1.safetensors")},
      {"convert", path("q.safetensors"), "--to", "ggml", "--out", path("q.safetensors")},
      {"run", path("q.safetensors"), "--activations", path("x.npy"), "--out", path("x.npy")},
      {"run", path("q.safetensors"), "--activations", path("x.npy"), "--out",
       path("q.safetensors")},
      {"make-layer", "--out", path("y.safetensors"), "--activations", path("y.safetensors")}};
  for (const auto& arguments : cases) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << " " << result;
    EXPECT_TRUE(contains(result.err, "name"));
  }
  EXPECT_EQ(read_text(path("layer.safetensors")), layer);
  EXPECT_EQ(read_text(path("q.safetensors")), q);
  EXPECT_EQ(read_text(path("x.npy")), x);
  EXPECT_EQ(read_text(path("model/model-1.safetensors")), shard);
}

// Wrong whatever the files hold: exit status 2, one line, nothing written.
TEST_F(Models, AnOutputThatCannotBeIsAWrongRequest) {
  make_layer();
  quantize();
  write_model(path("layer.safetensors"), path("model"));
  std::filesystem::create_directory(path("full"));
  write_text("full/notes.txt", "mine");
  const std::vector<std::string> before = files();
  const std::string model = path("model"), layer = path("layer.safetensors"),
                    q = path("q.safetensors"), x = path("x.npy");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"quantize", model, "--out", path("full")},
       "holds notes.txt; name a new or an empty folder"},
      {{"quantize", layer, "--out", path("full")}, "holds notes.txt"},
      {{"quantize", model, "--out", path("full/notes.txt")}, "is a file"},
      {{"quantize", model, "--out", model}, "is the folder of the input"},
      {{"quantize", layer, "--out", path("o.npy")}, "must end in .safetensors"},
      {{"quantize", layer, "--out", path("o.gguf"), "--convention", "ggml"}, ".safetensors"},
      {{"quantize", layer, "--out", path("o"), "--convention", "ggml", "--scale-layout",
        "swizzled_128x4"},
       "--scale-layout: swizzled_128x4; ggml blocks hold their scales"},
      {{"convert", q, "--out", path("full")}, "is a folder; name a file in it"},
      {{"convert", q, "--out", path("o.gguf")}, "must end in .safetensors"},
      {{"run", q, "--activations", x, "--out", path("full")}, "is a folder"},
      {{"make-layer", "--out", path("full")}, "is a folder"}};
  for (const auto& [arguments, part] : cases) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << " " << result;
    EXPECT_TRUE(contains(result.err, part));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(files(), before);
  EXPECT_EQ(read_text(path("full/notes.txt")), "mine");
  // Hidden files are no model: a fresh repository, say.
  std::filesystem::create_directories(path("clone/.git"));
  const ProgramResult clone = run({"quantize", model, "--out", path("clone")});
  EXPECT_EQ(clone.exit_code, 0) << clone;
}

// 4-bit activations need an input scale of every weight, and loaders of W4A16 know none.
TEST_F(Models, InputScalesAreAllOrNoneWhereAConfigSaysSo) {
  make_layer();
  ASSERT_EQ(run({"make-layer", "--out", path("down.safetensors"), "--activations", path("h.npy"),
                 "--n", "64", "--k", "48", "--prefix", "model.layers.0.mlp.down"})
                .exit_code,
            0);
  const Expected<checkpoint::TensorFile> gate = checkpoint::TensorFile::open(
                                             path("layer.safetensors")),
                                         down =
                                             checkpoint::TensorFile::open(path("down.safetensors"));
  ASSERT_TRUE(gate.ok() && down.ok());
  checkpoint::TensorFile all = *gate;
  all.share_memory_of(*down);
  for (const auto& [name, tensor] : down->tensors()) ASSERT_TRUE(all.add(tensor).ok());
  std::filesystem::create_directory(path("model"));
  ASSERT_TRUE(checkpoint::write_safetensors(path("model/model.safetensors"), all).ok());
  write_text("model/config.json", "{}");

  for (const char* convention : {"modelopt", "compressed-tensors"}) {
    const auto quantized = [&](const std::string& out, std::vector<std::string> calibrate) {
      std::vector<std::string> arguments = {"quantize", path("model"),  "--out",
                                            path(out),  "--convention", convention};
      for (const std::string& file : calibrate)
        arguments.insert(arguments.end(), {"--calibrate", path(file)});
      const ProgramResult result = run(arguments);
      EXPECT_EQ(result.exit_code, 0) << result;
      return result;
    };
    const auto has_inputs = [&](const std::string& out) {
      const Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(path(out));
      int count = 0;
      for (const auto& [name, tensor] : file->tensors())
        count += name.find("input_") != std::string::npos ? 1 : 0;
      const json config = json::parse(read_text(path(out + "/config.json")));
      const json group = config["quantization_config"]["config_groups"]["group_0"];
      const bool declared =
          group.contains("input_activations") && !group["input_activations"].is_null();
      EXPECT_EQ(declared, count > 0) << config;
      return count;
    };
    const std::string name = convention;
    const ProgramResult some = quantized("some-" + name, {"x.npy"});
    EXPECT_TRUE(contains(some.err, "no input scales written: weights have 48 columns"));
    EXPECT_EQ(has_inputs("some-" + name), 0);
    quantized("all-" + name, {"x.npy", "h.npy"});
    EXPECT_EQ(has_inputs("all-" + name), 4);
    quantized("none-" + name, {});
    EXPECT_EQ(has_inputs("none-" + name), 0);
  }
}

TEST_F(Models, MakeLayerTooLargeIsAWrongRequest) {
  for (const char* n : {"9000000000000000000", "1000000000000000000"}) {
    const ProgramResult result =
        run({"make-layer", "--out", path("o.safetensors"), "--n", n, "--k", "1024"});
    EXPECT_EQ(result.exit_code, 2) << result;
    EXPECT_TRUE(contains(result.err, "64 bits"));
  }
}

TEST_F(Models, WideningIsNotRounding) {
  ASSERT_EQ(run({"make-layer", "--out", path("layer.safetensors"), "--activations",
                 path("x.safetensors"), "--m", "3", "--n", "32", "--k", "64", "--type", "bf16"})
                .exit_code,
            0);
  quantize();
  const auto note = [&](const char* type) {
    return run({"run", path("q.safetensors"), "--activations", path("x.safetensors"), "--a-type",
                type})
        .err;
  };
  EXPECT_TRUE(contains(note("f32"), "activations widened from BF16 to f32"));
  EXPECT_TRUE(contains(note("f16"), "activations rounded from BF16 to f16"));
}

// A layer with three experts, the first two of different input scales when asked for.
class Experts : public CliTest {
 protected:
  void make_experts() {
    std::vector<std::string> parts;
    checkpoint::TensorFile all;
    for (int e = 0; e < 3; ++e) {
      const std::string name = "e" + std::to_string(e) + ".safetensors";
      ASSERT_EQ(run({"make-layer", "--out", path(name), "--activations", path("x.npy"), "--m", "7",
                     "--n", "48", "--k", "64", "--seed", std::to_string(10 * e + 1), "--prefix",
                     "model.layers.0.mlp.experts." + std::to_string(e)})
                    .exit_code,
                0);
      const Expected<checkpoint::TensorFile> one = checkpoint::TensorFile::open(path(name));
      ASSERT_TRUE(one.ok());
      all.share_memory_of(*one);
      for (const auto& [tensor_name, tensor] : one->tensors()) ASSERT_TRUE(all.add(tensor).ok());
    }
    ASSERT_TRUE(checkpoint::write_safetensors(path("layer.safetensors"), all).ok());
    quantize();
  }
  std::string d_of(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"run",           path("q.safetensors"),
                                    "--activations", path("x.npy"),
                                    "--check",       "--d-type",
                                    "f32",           "--a-type",
                                    "bf16",          "--out",
                                    path("d.npy")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ProgramResult result = run(all);
    EXPECT_EQ(result.exit_code, 0) << result;
    const Expected<checkpoint::TensorFile> d = checkpoint::open_npy(path("d.npy"));
    if (!d) return {};
    const auto bytes = d->tensors().begin()->second.data;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

TEST_F(Experts, GroupedRunsAgreeWithOneExpertAtATime) {
  make_experts();
  const int64_t row = 48 * 4;
  std::vector<std::string> each;
  for (const char* e : {"0", "1", "2"})
    each.push_back(d_of({"--prefix", "model.layers.0.mlp", "--expert", e}));
  ASSERT_EQ(each[0].size(), static_cast<size_t>(7 * row));
  EXPECT_TRUE(each[0] != each[1]);
  const std::string expected = each[0].substr(0, 2 * row) + each[2].substr(2 * row, 5 * row);
  std::ofstream(path("counts.txt")) << "2, 0\n5\n";
  EXPECT_TRUE(d_of({"--experts", "--expert-tokens", path("counts.txt")}) == expected);
  std::ofstream(path("offsets.txt")) << "0 2 2 7";
  EXPECT_TRUE(d_of({"--experts", "--expert-tokens", path("offsets.txt")}) == expected);

  // NVFP4 activations, quantised on the way in.
  const ProgramResult nvfp4 = run({"run", path("q.safetensors"), "--activations", path("x.npy"),
                                   "--experts", "--expert-tokens", path("counts.txt"), "--check"});
  EXPECT_EQ(nvfp4.exit_code, 0) << nvfp4;
  EXPECT_TRUE(contains(nvfp4.out, "of 2 experts within the bound"));
}

TEST_F(Experts, MaskedRuns) {
  make_experts();
  std::vector<float> values(3 * 4 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) - 6.0f;
  checkpoint::TensorFile file;
  ASSERT_TRUE(file.add_copy("x", checkpoint::ElementType::kF32, {3, 4, 64}, values.data(),
                            values.size() * 4)
                  .ok());
  ASSERT_TRUE(checkpoint::write_npy(path("x.npy"), file.tensors().begin()->second).ok());
  std::ofstream(path("counts.txt")) << "4 0 1";
  const std::string d = d_of({"--experts", "--masked", "--expert-tokens", path("counts.txt")});
  ASSERT_EQ(d.size(), static_cast<size_t>(3 * 4 * 48 * 4));
  const std::string unused(4 * 48 * 4, '\0');
  EXPECT_EQ(d.substr(4 * 48 * 4, unused.size()), unused) << "expert 1 has no rows";
  EXPECT_NE(d.substr(0, unused.size()), unused);
}

TEST_F(Experts, WrongCountsAreRefused) {
  make_experts();
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"2 5", "2 numbers"},
      {"2 0 6", "8 rows in all"},
      {"2 5 x\n", "counts.txt: 'x'; must be whole numbers of 64 bits"},
      {"2 x\x01y 5", "counts.txt: 'x\\x01y'; must be whole"},
      {"2 5 \33[2J", "'\\x1b[2J'; must be whole numbers"},
      {"-1 3 5", "-1 rows"},
      {"0 3 2 7", "not decrease"},
      {"1 2 2 7", "start at 0"},
      {"99999999999999999999 0 0", "whole numbers"}};
  for (const auto& [text, part] : cases) {
    std::ofstream(path("counts.txt")) << text;
    const ProgramResult result = run({"run", path("q.safetensors"), "--activations", path("x.npy"),
                                      "--experts", "--expert-tokens", path("counts.txt")});
    EXPECT_EQ(result.exit_code, 1) << text << result;
    EXPECT_TRUE(contains(result.err, part));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  const ProgramResult number = run({"run", path("q.safetensors"), "--activations", path("x.npy"),
                                    "--prefix", "model.layers.0.mlp", "--expert", "3"});
  EXPECT_EQ(number.exit_code, 1) << number;
  EXPECT_TRUE(contains(number.err, "has 3 experts"));
  EXPECT_EQ(
      run({"run", path("q.safetensors"), "--activations", path("x.npy"), "--experts"}).exit_code,
      2);
}

TEST_F(Experts, ValidateSaysWhatRunCanUse) {
  make_experts();
  ProgramResult result = run({"validate", path("q.safetensors")});
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "sound; `run` can use 3 of 3 layers"));
  result = run({"validate", path("layer.safetensors")});  // bf16
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "sound; `run` can use 0 of 3 layers"));
  EXPECT_TRUE(contains(result.out, "dualgemm quantize"));

  // Input scales that differ: sound, but run needs to be told.
  Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(path("q.safetensors"));
  ASSERT_TRUE(file.ok());
  const float low = 0.25f, high = 0.5f;
  const std::string at = "model.layers.0.mlp.experts.1.";
  ASSERT_TRUE(
      file->add_copy(at + "gate_proj.input_scale", checkpoint::ElementType::kF32, {}, &low, 4)
          .ok());
  ASSERT_TRUE(
      file->add_copy(at + "up_proj.input_scale", checkpoint::ElementType::kF32, {}, &high, 4).ok());
  const std::vector<float> bias(48, 1.0f);
  ASSERT_TRUE(file->add_copy("model.layers.0.mlp.experts.2.up_proj.bias",
                             checkpoint::ElementType::kF32, {48}, bias.data(), 192)
                  .ok());
  ASSERT_TRUE(checkpoint::write_safetensors(path("odd.safetensors"), *file).ok());
  result = run({"validate", path("odd.safetensors"), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result;
  const json report = json::parse(result.out);
  EXPECT_TRUE(report["build"].contains("revision"));
  EXPECT_EQ(report["layers"][0]["runnable"], true);
  EXPECT_EQ(report["layers"][1]["runnable"], false);
  EXPECT_TRUE(contains(report["layers"][1]["refusal"], "--max-input-scale"));
  EXPECT_EQ(report["layers"][2]["runnable"], true);
  result = run({"run", path("odd.safetensors"), "--activations", path("x.npy"), "--prefix",
                "model.layers.0.mlp", "--expert", "1"});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "--max-input-scale"));
  result = run({"run", path("odd.safetensors"), "--activations", path("x.npy"), "--prefix",
                "model.layers.0.mlp", "--expert", "2", "--check"});
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "Gate and Up have a bias"));
  std::ofstream(path("counts.txt")) << "2 1 4";  // only the last expert's bias is not zeros
  result = run({"run", path("odd.safetensors"), "--activations", path("x.npy"), "--experts",
                "--expert-tokens", path("counts.txt"), "--max-input-scale", "--check"});
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.err, "Gate and Up have a bias"));
  EXPECT_TRUE(contains(result.out, "of 3 experts within the bound"));
  result = run({"run", path("odd.safetensors"), "--activations", path("x.npy"), "--prefix",
                "model.layers.0.mlp", "--expert", "2", "--bias", "f32"});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "brings its own"));
}

TEST_F(Models, ConvertSaysWhenItKeepsReciprocals) {
  make_layer();
  quantize({"--global-scale", "0.0123456"});
  ProgramResult result = run({"convert", path("q.safetensors"), "--to", "compressed-tensors",
                              "--out", path("ct.safetensors")});
  ASSERT_EQ(result.exit_code, 0) << result;
  result = run(
      {"convert", path("ct.safetensors"), "--to", "modelopt", "--out", path("back.safetensors")});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_EQ(read_text(path("back.safetensors")), read_text(path("q.safetensors")));
}

TEST_F(Models, NanInActivationsNamesFileAndTensor) {
  make_layer();
  quantize();
  std::string bytes = read_text(path("x.npy"));
  const uint32_t nan = 0x7FC00000;
  bytes.replace(bytes.size() - 4, 4, reinterpret_cast<const char*>(&nan), 4);
  write_text("nan.npy", bytes);
  const ProgramResult result =
      run({"run", path("q.safetensors"), "--activations", path("nan.npy")});
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "nan.npy, tensor 'nan'"));
}

}  // namespace
}  // namespace dualgemm::test
