// Every convention through the command: what --from, --to and --convention take, and a layer of
// each that is run, validated and converted to the same results.
#include <string_view>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors.hpp"
#include "run_program.hpp"

namespace dualgemm::test {
namespace {

using checkpoint::ConventionRow;
using checkpoint::ElementType;
using Strings = std::vector<std::string>;

class Conventions : public CliTest {
 protected:
  // NVFP4 weights of a gated layer in ModelOpt's names.
  void make_layer() const {
    const ProgramResult made =
        run({"make-layer", "--out", path("float.safetensors"), "--activations", path("x.npy"),
             "--m", "5", "--n", "32", "--k", "64"});
    ASSERT_EQ(made.exit_code, 0) << made;
    const ProgramResult quantized =
        run({"quantize", path("float.safetensors"), "--out", path("modelopt.safetensors")});
    ASSERT_EQ(quantized.exit_code, 0) << quantized;
  }
  // The same layer as `row` names it; where it cannot be written, its tensors are renamed.
  std::string layer_in(const ConventionRow& row) const {
    const std::string out = path(std::string("in_") + row.name + ".safetensors");
    if (row.can_write) {
      const ProgramResult result =
          run({"convert", path("modelopt.safetensors"), "--to", row.name, "--out", out});
      EXPECT_EQ(result.exit_code, 0) << result;
      return out;
    }
    const auto in = checkpoint::TensorFile::open(path("modelopt.safetensors"));
    EXPECT_TRUE(in.ok()) << in.status().message();
    checkpoint::TensorFile renamed;
    renamed.share_memory_of(*in);
    const ConventionRow& modelopt = checkpoint::row_of(checkpoint::Convention::kModelOpt);
    for (const auto& [name, tensor] : in->tensors()) {
      checkpoint::TensorView view = tensor;
      const auto rename = [&view, &old = name](std::string_view from, const char* to) {
        if (old.ends_with(from)) view.name = old.substr(0, old.size() - from.size()) + to;
      };
      rename(modelopt.module.data, row.module.data);
      rename(modelopt.module.scales, row.module.scales);
      rename(modelopt.module.global_scale, row.module.global_scale);
      EXPECT_TRUE(renamed.add(view).ok());
    }
    EXPECT_TRUE(checkpoint::write_safetensors(out, renamed).ok());
    return out;
  }
  std::string result_of(const std::string& layer) const {
    const ProgramResult result = run({"run", layer, "--activations", path("x.npy"), "--check",
                                      "--d-type", "f32", "--out", path("d.npy")});
    EXPECT_EQ(result.exit_code, 0) << result;
    return read_text(path("d.npy"));
  }
};

TEST_F(Conventions, AreRunValidatedAndConverted) {
  make_layer();
  const std::string expected = result_of(path("modelopt.safetensors"));
  for (const ConventionRow& row : checkpoint::conventions()) {
    if (!checkpoint::is_nvfp4(row)) continue;
    SCOPED_TRACE(row.name);
    const std::string layer = layer_in(row);
    EXPECT_TRUE(result_of(layer) == expected);
    const ProgramResult sound = run({"validate", layer});
    EXPECT_EQ(sound.exit_code, 0) << sound;
    EXPECT_TRUE(contains(sound.out, row.name)) << sound;
    EXPECT_TRUE(contains(sound.err, "1 of 1 layers")) << sound;
    const std::string back = path("back.safetensors");
    const ProgramResult converted =
        run({"convert", layer, "--from", row.name, "--to", "modelopt", "--out", back});
    EXPECT_EQ(converted.exit_code, 0) << converted;
    EXPECT_TRUE(result_of(back) == expected);
  }
}

TEST_F(Conventions, OptionsTakeWhatTheTableSays) {
  for (const ConventionRow& row : checkpoint::conventions()) {
    SCOPED_TRACE(row.name);
    const auto refuses = [&](Strings arguments, const char* option) {
      arguments.insert(arguments.end(), {"--out", path("o.safetensors"), option, row.name});
      const ProgramResult result = run(arguments);
      EXPECT_NE(result.exit_code, 0);  // there is no such input
      return result.exit_code == 2;
    };
    const Strings convert = {"convert", path("none.safetensors")};
    const Strings quantize = {"quantize", path("none.safetensors")};
    EXPECT_EQ(refuses(convert, "--from"), !checkpoint::is_nvfp4(row));
    EXPECT_EQ(refuses(convert, "--to"), !checkpoint::is_target(row));
    EXPECT_EQ(refuses(quantize, "--convention"), !checkpoint::is_target(row));
  }
}

}  // namespace
}  // namespace dualgemm::test
