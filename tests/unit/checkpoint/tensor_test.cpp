#include "checkpoint/tensor.hpp"

#include <cmath>
#include <limits>

#include "checkpoint/npy.hpp"
#include "checkpoint/safetensors.hpp"
#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;
using test::to_vector;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(ElementTypeTest, NamesAndBitsAreThoseOfTheFormat) {
  const std::pair<const char*, int> expected[] = {
      {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"U8", 8},
      {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8},     {"F8_E8M0", 8},     {"U16", 16},
      {"I16", 16}, {"F16", 16},    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"BF16", 16},
      {"U32", 32}, {"I32", 32},    {"F32", 32},        {"U64", 64},        {"I64", 64},
      {"F64", 64}, {"C64", 64}};
  for (const auto& [name, bits] : expected) {
    const Expected<ElementType> type = parse_element_type(name);
    ASSERT_TRUE(type.ok()) << name;
    EXPECT_STREQ(name_of(*type), name);
    EXPECT_EQ(bits_of(*type), bits) << name;
  }
  EXPECT_EQ(std::size(expected), static_cast<size_t>(ElementType::kC64) + 1);
  for (const char* name : {"", "f32", "F128", "F32 "}) {
    EXPECT_TRUE(
        fails_with(parse_element_type(name).status(), StatusCode::kInvalidArgument, "BF16"));
  }
}

TEST(CheckedSizeTest, CountsOrRefuses) {
  const auto bytes = [](ElementType type, std::vector<int64_t> shape) {
    return checked_bytes(type, shape, "t");
  };
  EXPECT_EQ(*bytes(ElementType::kF32, {}), 4);
  EXPECT_EQ(*bytes(ElementType::kF64, {3, 5}), 120);
  EXPECT_EQ(*bytes(ElementType::kF4, {3, 6}), 9);
  EXPECT_EQ(*bytes(ElementType::kF6E2M3, {4}), 3);
  EXPECT_EQ(*bytes(ElementType::kU8, {kHuge, kHuge, 0}), 0);
  EXPECT_EQ(*bytes(ElementType::kU8, {kHuge / 8}), kHuge / 8);
  EXPECT_TRUE(
      fails_with(bytes(ElementType::kF4, {3}).status(), StatusCode::kInvalidArgument, "[3]"));
  EXPECT_TRUE(
      fails_with(bytes(ElementType::kU8, {-1}).status(), StatusCode::kInvalidArgument, "-1"));
  EXPECT_TRUE(
      fails_with(bytes(ElementType::kU8, {-1, 0}).status(), StatusCode::kInvalidArgument, "-1"));
  EXPECT_TRUE(fails_with(bytes(ElementType::kU8, {int64_t{1} << 32, int64_t{1} << 31}).status(),
                         StatusCode::kOverflow, "63 bits"));
  EXPECT_TRUE(
      fails_with(bytes(ElementType::kF64, {kHuge / 8}).status(), StatusCode::kOverflow, "F64"));
}

TEST(TensorFileTest, AddRefusesWhatContradictsItself) {
  TensorFile file;
  ASSERT_TRUE(file.add("a", ElementType::kU8, {2}, to_vector("ab")).ok());
  EXPECT_TRUE(fails_with(file.add("a", ElementType::kU8, {2}, to_vector("ab")),
                         StatusCode::kInvalidArgument, "unique"));
  EXPECT_TRUE(fails_with(file.add("b", ElementType::kU8, {3}, to_vector("ab")),
                         StatusCode::kInvalidArgument, "[3] of U8 needs 3"));
  EXPECT_FALSE(file.contains("b"));
  file.erase("a");
  EXPECT_TRUE(file.tensors().empty());
}

TEST(TensorFileTest, MemoryOutlivesTheFileItCameFrom) {
  TensorFile copy;
  {
    TensorFile file;
    const std::string text(1000, 'x');
    ASSERT_TRUE(file.add("a", ElementType::kU8, {1000}, to_vector(text)).ok());
    copy.share_memory_of(file);
    ASSERT_TRUE(copy.add(*file.get("a")).ok());
  }
  EXPECT_EQ(test::to_text(copy.find("a")->data), std::string(1000, 'x'));
}

TEST(TensorFileTest, MissingTensorNamesTheNearest) {
  TensorFile file;
  for (const char* name :
       {"model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight",
        "model.layers.1.mlp.gate_proj.weight", "lm_head.weight", "norm"}) {
    ASSERT_TRUE(file.add(name, ElementType::kU8, {0}, {}).ok());
  }
  const Status status = file.get("model.layers.0.mlp.gate_prj.weight").status();
  EXPECT_TRUE(fails_with(status, StatusCode::kNotFound, "5 tensors"));
  EXPECT_EQ(status.rule(),
            "nearest names: model.layers.0.mlp.gate_proj.weight, "
            "model.layers.1.mlp.gate_proj.weight, model.layers.0.mlp.up_proj.weight");
  EXPECT_TRUE(fails_with(TensorFile().get("x").status(), StatusCode::kNotFound, "0 tensors"));
  EXPECT_TRUE(fails_with(file.get_or_only("").status(), StatusCode::kInvalidArgument, "lm_head"));
  EXPECT_EQ(file.get_or_only("norm")->name, "norm");
  TensorFile single;
  ASSERT_TRUE(single.add("only", ElementType::kU8, {0}, {}).ok());
  EXPECT_EQ(single.get_or_only("")->name, "only");
}

TEST(NearestNamesTest, EditDistanceOrdersThem) {
  const std::string_view names[] = {"kitten", "sitting", "mitten", "kitchen", ""};
  EXPECT_EQ(nearest_names("kitten", names, 4),
            (std::vector<std::string>{"kitten", "mitten", "kitchen", "sitting"}));
  EXPECT_EQ(nearest_names("", names, 1), std::vector<std::string>{""});
  EXPECT_EQ(nearest_names("x", {}, 3), std::vector<std::string>{});
}

TEST(DecodeTest, FloatsOfEveryWidthFromUnalignedBytes) {
  const double doubles[] = {1.5, -0.25, 1e300};
  const float floats[] = {1.5f, -0.25f, 7.0f};
  const uint16_t halves[] = {0x3E00, 0xB400, 0x7C00};  // 1.5, -0.25, inf
  const uint16_t brains[] = {0x3FC0, 0xBE80, 0x7F80};
  const auto decode = [](ElementType type, const void* data, size_t size) {
    std::vector<std::byte> shifted(size + 1);  // the heap aligns, so + 1 does not
    std::memcpy(shifted.data() + 1, data, size);
    return *decode_to_f32({"t", type, {3}, std::span(shifted).subspan(1)});
  };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(decode(ElementType::kF64, doubles, sizeof(doubles)), (std::vector{1.5f, -0.25f, inf}));
  EXPECT_EQ(decode(ElementType::kF32, floats, sizeof(floats)), (std::vector{1.5f, -0.25f, 7.0f}));
  EXPECT_EQ(decode(ElementType::kF16, halves, sizeof(halves)), (std::vector{1.5f, -0.25f, inf}));
  EXPECT_EQ(decode(ElementType::kBF16, brains, sizeof(brains)), (std::vector{1.5f, -0.25f, inf}));
  EXPECT_TRUE(fails_with(decode_to_f32({"t", ElementType::kI32, {0}, {}}).status(),
                         StatusCode::kUnsupported, "I32"));
}

// The others may multiply to anything: UndefinedBehaviorSanitizer looks.
TEST(TensorViewTest, AnExtentOfZeroLeavesNoElements) {
  TensorView view;
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{int64_t{1} << 62, int64_t{1} << 62, 0}, {0, int64_t{1} << 62, 4}}) {
    view.shape = shape;
    EXPECT_EQ(view.elements(), 0);
    TensorFile file;
    EXPECT_TRUE(file.add({"x", ElementType::kF32, shape, {}}).ok());
    EXPECT_TRUE(decode_to_f32(*file.get("x"))->empty());
  }
}

TEST(OpenTest, FormatFromNameThenFromContent) {
  const test::TempDirectory directory;
  TensorFile file;
  ASSERT_TRUE(file.add("x", ElementType::kU8, {2}, to_vector("ab")).ok());
  ASSERT_TRUE(write_safetensors(directory / "a.safetensors", file).ok());
  ASSERT_TRUE(write_safetensors(directory / "b", file).ok());
  ASSERT_TRUE(write_npy(directory / "x.npy", *file.get("x")).ok());
  ASSERT_TRUE(write_npy(directory / "x", *file.get("x")).ok());
  for (const char* name : {"a.safetensors", "b", "x.npy", "x", ""}) {  // "": the directory itself
    const Expected<TensorFile> opened = TensorFile::open(directory / name);
    ASSERT_TRUE(opened.ok()) << name << ": " << opened.status().message();
    EXPECT_EQ(test::to_text(opened->get("x")->data), "ab") << name;
  }
  test::write_text(directory / "text", "hello");
  EXPECT_TRUE(fails_with(TensorFile::open(directory / "text").status(),
                         StatusCode::kInvalidArgument, "neither"));
  EXPECT_TRUE(
      fails_with(TensorFile::open(directory / "none").status(), StatusCode::kNotFound, "none"));
  EXPECT_TRUE(fails_with(TensorFile::open(directory / "none.npy").status(), StatusCode::kNotFound,
                         "No such file"));
}

TEST(OpenTest, DirectoryNeedsOneCheckpoint) {
  const test::TempDirectory directory;
  EXPECT_TRUE(
      fails_with(TensorFile::open(directory.path()).status(), StatusCode::kNotFound, "0 .safe"));
  TensorFile file;
  ASSERT_TRUE(write_safetensors(directory / "a.safetensors", file).ok());
  ASSERT_TRUE(write_safetensors(directory / "b.safetensors", file).ok());
  EXPECT_TRUE(
      fails_with(TensorFile::open(directory.path()).status(), StatusCode::kNotFound, "2 .safe"));
}

}  // namespace
}  // namespace dualgemm::checkpoint
