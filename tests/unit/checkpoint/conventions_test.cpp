// The table of conventions: every row is written, or made here where it cannot be, and read back to
// the same bits.
#include "checkpoint/conventions.hpp"

#include <gtest/gtest.h>

#include <set>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint_test_support.hpp"
#include "dualgemm/formats.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;

constexpr float kGlobal = 3.0f, kInput = 5.0f;  // no powers of two, and 1/(1/x) gives x back

class ConventionTest : public ::testing::Test {
 protected:
  static std::span<const std::byte> bytes_of(const std::vector<uint8_t>& bytes) {
    return std::as_bytes(std::span(bytes));
  }
  // raw_ as `row` keeps it; what it points to stays in this object.
  Weight weight_in(const ConventionRow& row) {
    Weight weight;
    weight.convention = row.id;
    weight.n = raw_.n;
    weight.k = raw_.k;
    if (row.stored == Stored::kValues) {
      weight.type = DataType::kF32;
      weight.data = std::as_bytes(std::span(values_));
      weight.dequant_global_scales = {1.0f};
      return weight;
    }
    weight.type = DataType::kE2M1;
    weight.data = bytes_of(raw_.codes);
    weight.scales = raw_.scales;
    if (row.stored == Stored::kGgmlBlocks) {
      EXPECT_TRUE(
          to_ggml_nvfp4(raw_.codes.data(), raw_.scales.data(), raw_.n, raw_.k, blocks_.data())
              .ok());
      weight.data = bytes_of(blocks_);
      weight.scales = {};
    }
    weight.dequant_global_scales = {kGlobal};
    weight.dequant_input_scales = {kInput};
    return weight;
  }
  // The tensors of a row that the library does not write, by these suffixes.
  void add_by_hand(TensorFile& file, const ConventionRow& row, const Suffixes& suffixes,
                   const std::string& stem) {
    ASSERT_EQ(row.stored, Stored::kCodes);
    const auto stored = [&](float x) { return row.scalars == ScalarRule::kDivisor ? 1.0f / x : x; };
    ASSERT_TRUE(
        add_bytes(file, stem + suffixes.data, ElementType::kU8, {raw_.n, raw_.k / 2}, raw_.codes)
            .ok());
    ASSERT_TRUE(add_bytes(file, stem + suffixes.scales, ElementType::kF8E4M3, {raw_.n, raw_.k / 16},
                          raw_.scales)
                    .ok());
    add_scalar(file, stem + suffixes.global_scale, stored(kGlobal));
    add_scalar(file, stem + suffixes.input_scale, stored(kInput));
  }
  void expect_same(const Weight& found, const Weight& expected) {
    EXPECT_EQ(found.convention, expected.convention);
    EXPECT_EQ(found.type, expected.type);
    EXPECT_EQ(found.n, raw_.n);
    EXPECT_EQ(found.k, raw_.k);
    EXPECT_EQ(test::to_text(found.data), test::to_text(expected.data));
    EXPECT_TRUE(std::equal(found.scales.begin(), found.scales.end(), expected.scales.begin(),
                           expected.scales.end()));
    EXPECT_EQ(found.dequant_global_scales, expected.dequant_global_scales);
    EXPECT_EQ(found.dequant_input_scales, expected.dequant_input_scales);
  }

  test::Rng rng_;
  RawWeight raw_{130, 64, rng_};
  std::vector<float> values_ = std::vector<float>(static_cast<size_t>(raw_.n * raw_.k), 1.5f);
  std::vector<uint8_t> blocks_ = std::vector<uint8_t>(static_cast<size_t>(raw_.n * 36));
};

TEST_F(ConventionTest, EveryRowIsReadBackToTheSameBits) {
  const test::TempDirectory folder;
  for (const ConventionRow& row : conventions()) {
    SCOPED_TRACE(row.name);
    const Weight weight = weight_in(row);
    TensorFile file;
    if (row.can_write) {
      ASSERT_TRUE(add_weight(file, "m.gate_proj", weight).ok());
    } else {
      add_by_hand(file, row, row.module, "m.gate_proj");
      EXPECT_TRUE(
          fails_with(add_weight(file, "m.up_proj", weight), StatusCode::kUnsupported, row.name));
    }
    const std::string path = folder / (std::string(row.name) + ".safetensors");
    ASSERT_TRUE(write_safetensors(path, file).ok());
    const Expected<TensorFile> read = TensorFile::open(path);
    ASSERT_TRUE(read.ok()) << read.status().message();
    const Expected<Weight> found = load_weight(*read, "m.gate_proj");
    ASSERT_TRUE(found.ok()) << found.status().message();
    expect_same(*found, weight);
    const auto listed = list_nvfp4_weights(*read);
    ASSERT_TRUE(listed.ok()) << listed.status().message();
    EXPECT_EQ(listed->size(), is_nvfp4(row) ? 1u : 0u);
    EXPECT_EQ(list_mlp_layers(*read), (std::vector<LayerEntry>{{"m", 0}}));
    WeightOptions other;  // what was asked for must be there
    other.convention = row.id == Convention::kPlain ? Convention::kModelOpt : Convention::kPlain;
    EXPECT_FALSE(load_weight(*read, "m.gate_proj", other).ok());
  }
}

TEST_F(ConventionTest, EveryRowBecomesEveryTargetAndComesBack) {
  for (const ConventionRow& from : conventions()) {
    if (!is_nvfp4(from)) continue;
    TensorFile file;
    if (from.can_write) {
      ASSERT_TRUE(add_weight(file, "m", weight_in(from)).ok());
    } else {
      add_by_hand(file, from, from.module, "m");
    }
    for (const ConventionRow& to : conventions()) {
      SCOPED_TRACE(testing::Message() << from.name << " to " << to.name);
      const Expected<TensorFile> out = convert_checkpoint(file, {{}, to.id, {}, {}});
      if (!is_target(to)) {
        EXPECT_TRUE(fails_with(out.status(), StatusCode::kUnsupported, names_of(is_target)));
        continue;
      }
      ASSERT_TRUE(out.ok()) << out.status().message();
      const Expected<Weight> found = load_weight(*out, "m");
      ASSERT_TRUE(found.ok()) << found.status().message();
      expect_same(*found, weight_in(to));
    }
    const Expected<TensorFile> unchanged = convert_checkpoint(file, {});
    ASSERT_TRUE(unchanged.ok()) << unchanged.status().message();
    EXPECT_EQ(load_weight(*unchanged, "m")->convention,
              from.can_write ? from.id : Convention::kModelOpt);
  }
}

// A weight that is a parameter with the module's own name.
TEST_F(ConventionTest, ParametersAreRead) {
  for (const ConventionRow& row : conventions()) {
    if (row.parameter.data == nullptr) continue;
    SCOPED_TRACE(row.name);
    TensorFile file;
    add_by_hand(file, row, row.parameter, row.parameter.underscore ? "m._gate" : "m.gate");
    const Expected<Weight> found = load_weight(file, "m.gate");
    ASSERT_TRUE(found.ok()) << found.status().message();
    expect_same(*found, weight_in(row));
    EXPECT_EQ(*list_nvfp4_weights(file), std::vector<std::string>{"m.gate"});
  }
}

TEST_F(ConventionTest, MissingPartsAreNamed) {
  for (const ConventionRow& row : conventions()) {
    if (row.stored != Stored::kCodes) continue;
    SCOPED_TRACE(row.name);
    const std::string module = "m.gate_proj";
    const auto without = [&](const char* suffix) {
      TensorFile file;
      add_by_hand(file, row, row.module, module);
      file.erase(module + suffix);
      return file;
    };
    EXPECT_TRUE(fails_with(load_weight(without(row.module.scales), module).status(),
                           StatusCode::kNotFound, module + row.module.scales));
    const TensorFile no_global = without(row.module.global_scale);
    EXPECT_EQ(load_weight(no_global, module).ok(), !row.needs_global_scale);
    EXPECT_TRUE(load_weight(without(row.module.input_scale), module).ok());
    // The layer is broken, not absent.
    EXPECT_EQ(list_mlp_layers(without(row.module.data)), (std::vector<LayerEntry>{{"m", 0}}));
  }
}

TEST(ConventionTable, NamesAreUniqueAndParsed) {
  std::set<std::string> names;
  for (const ConventionRow& row : conventions()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const Expected<Convention> parsed = parse_convention(row.name);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, row.id);
    EXPECT_EQ(&row_of(row.id), &row);
  }
  for (const char* name : {"", "Plain", "modelopt "}) {
    EXPECT_TRUE(fails_with(parse_convention(name).status(), StatusCode::kInvalidArgument,
                           "must be one of plain, modelopt, "));
  }
  EXPECT_EQ(names_of(is_target), "modelopt, compressed_tensors or ggml");
  EXPECT_EQ(names_of([](const ConventionRow&) { return false; }), "");
}

}  // namespace
}  // namespace dualgemm::checkpoint
