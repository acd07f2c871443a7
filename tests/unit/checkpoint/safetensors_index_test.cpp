#include "io_test_support.hpp"
#include "tools/checkpoint/safetensors.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::as_bytes;
using test::fails_with;
using test::to_vector;
using test::write_text;

auto parse_index(const std::string& json) {
  return parse_safetensors_index(as_bytes(json), "index");
}

TEST(SafetensorsIndexTest, MapsNamesToFiles) {
  const auto index =
      parse_index(R"({"metadata":{"total_size":123,"more":[1,-2,0.5,null,true,{"weight_map":{}}]},
      "weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"},"weight_map_2":"x"})");
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(*index, (std::map<std::string, std::string>{{"a", "m-1.safetensors"},
                                                        {"b", "m-2.safetensors"}}));
  EXPECT_TRUE(parse_index(R"({"weight_map":{}})").ok());
}

TEST(SafetensorsIndexTest, HostileIndexIsRefused) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "valid JSON"},
      {"{}", "weight_map"},
      {std::string("{\"weight_map\":{}}\0x", 19), "byte 17 is zero"},
      {"[]", "no place"},
      {"5", "no place"},
      {R"({"weight_map":[]})", "no place"},
      {R"({"weight_map":"x"})", "no place"},
      {R"({"weight_map":{"a":1}})", "no place"},
      {R"({"weight_map":{"a":{}}})", "no place"},
      {R"({"weight_map":{"a":["x.safetensors"]}})", "no place"},
      {R"({"weight_map":{"a":"x"}})", "same directory"},
      {R"({"weight_map":{"a":""}})", "same directory"},
      {R"({"weight_map":{"a":"../x.safetensors"}})", "same directory"},
      {R"({"weight_map":{"a":"/etc/x.safetensors"}})", "same directory"},
      {R"({"weight_map":{"a":"x\u0000.safetensors"}})", "same directory"},
      {R"({"weight_map":{"a\n":"x.safetensors"}})", "control"},
      {R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})", "repeated"},
      {R"({"weight_map":{},"weight_map":{}})", "twice"},
      {R"({"m":)" + std::string(100'000, '[') + "]}", "deep"},
      {R"({"weight_map":{"a":"x.safetensors"})", "valid JSON"},
  };
  for (const auto& [json, message] : cases) {
    EXPECT_TRUE(fails_with(parse_index(json).status(), StatusCode::kCorruptFile, message))
        << json.substr(0, 100);
  }
}

class ShardedTest : public ::testing::Test {
 protected:
  void write_shard(const std::string& name, const std::string& tensor, const std::string& layout) {
    TensorFile file;
    ASSERT_TRUE(file.add(tensor, ElementType::kU8, {2}, to_vector(tensor + tensor)).ok());
    if (!layout.empty()) file.metadata()["dualgemm.scale_layout"] = layout;
    file.metadata()["from"] = name;
    ASSERT_TRUE(write_safetensors(directory_ / name, file).ok());
  }
  void write_index(const std::string& map) {
    write_text(directory_ / "model.safetensors.index.json", R"({"weight_map":{)" + map + "}}");
  }
  test::TempDirectory directory_;
};

TEST_F(ShardedTest, DirectoryAndIndexOpenAlike) {
  write_shard("m-1.safetensors", "a", "linear");
  write_shard("m-2.safetensors", "b", "linear");
  write_index(R"("a":"m-1.safetensors","b":"m-2.safetensors")");
  for (const std::string& path : {directory_.path(), directory_ / "model.safetensors.index.json"}) {
    const Expected<TensorFile> file = TensorFile::open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->tensors().size(), 2u);
    EXPECT_EQ(test::to_text(file->get("b")->data), "bb");
    EXPECT_EQ(file->metadata().at("dualgemm.scale_layout"), "linear");
  }
}

TEST_F(ShardedTest, ErrorsNameWhatIsMissing) {
  write_shard("m-1.safetensors", "a", "");
  write_index(R"("a":"m-1.safetensors","b":"m-1.safetensors")");
  EXPECT_TRUE(fails_with(TensorFile::open(directory_.path()).status(), StatusCode::kNotFound,
                         "nearest names: a"));
  write_index(R"("a":"m-1.safetensors","b":"m-2.safetensors")");
  EXPECT_TRUE(fails_with(TensorFile::open(directory_.path()).status(), StatusCode::kNotFound,
                         "m-2.safetensors"));
  write_shard("m-2.safetensors", "b", "swizzled_128x4");
  EXPECT_TRUE(fails_with(TensorFile::open(directory_.path()).status(), StatusCode::kCorruptFile,
                         "same scale layout"));
}

// Embeddings and norms have neither codes nor scales, so no writer says anything about them, and
// what a writer says of one tensor stands in the shard of that tensor only.
TEST_F(ShardedTest, ShardsDifferInMetadataThatIsNotAboutAll) {
  TensorFile embeddings;
  const std::vector<float> values(4);
  ASSERT_TRUE(embeddings.add_copy("e", ElementType::kF32, {4}, values.data(), 16).ok());
  ASSERT_TRUE(write_safetensors(directory_ / "m-0.safetensors", embeddings).ok());
  write_shard("m-1.safetensors", "a", "swizzled_128x4");
  TensorFile file;
  ASSERT_TRUE(file.add("b", ElementType::kU8, {2}, to_vector("bb")).ok());
  file.metadata()["dualgemm.scale_layout"] = "swizzled_128x4";
  file.metadata()["dualgemm.nibble_order"] = "low_even";  // what is meant without it, too
  file.metadata()["dualgemm.multiplier.b"] = "3f800000";
  ASSERT_TRUE(write_safetensors(directory_ / "m-2.safetensors", file).ok());
  for (const char* order :
       {R"("e":"m-0.safetensors","a":"m-1.safetensors","b":"m-2.safetensors")",
        R"("b":"m-2.safetensors","a":"m-1.safetensors","e":"m-0.safetensors")"}) {
    write_index(order);
    const Expected<TensorFile> all = TensorFile::open(directory_.path());
    ASSERT_TRUE(all.ok()) << all.status().message();
    EXPECT_EQ(all->metadata().at("dualgemm.scale_layout"), "swizzled_128x4");
    EXPECT_EQ(all->metadata().at("dualgemm.multiplier.b"), "3f800000");
  }
  // A key about all that stands where there is nothing it could be about changes nothing.
  embeddings.metadata()["dualgemm.scale_layout"] = "linear";
  ASSERT_TRUE(write_safetensors(directory_ / "m-0.safetensors", embeddings).ok());
  const Expected<TensorFile> all = TensorFile::open(directory_.path());
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->metadata().at("dualgemm.scale_layout"), "swizzled_128x4");
  // Two shards that say different things of one tensor.
  embeddings.metadata()["dualgemm.multiplier.b"] = "40000000";
  ASSERT_TRUE(write_safetensors(directory_ / "m-0.safetensors", embeddings).ok());
  EXPECT_TRUE(fails_with(TensorFile::open(directory_.path()).status(), StatusCode::kCorruptFile,
                         "'dualgemm.multiplier.b' unlike that of another shard"));
}

}  // namespace
}  // namespace dualgemm::checkpoint
