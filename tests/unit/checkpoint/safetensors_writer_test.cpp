#include <sys/resource.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include "checkpoint/safetensors.hpp"
#include "io_test_support.hpp"
#include "support/rng.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;
using test::read_text;
using test::to_vector;

TEST(SafetensorsWriterTest, WritesExactlyTheseBytes) {
  const test::TempDirectory directory;
  TensorFile file;
  ASSERT_TRUE(file.add("b", ElementType::kU8, {3}, to_vector("xyz")).ok());
  ASSERT_TRUE(file.add("c", ElementType::kF32, {}, to_vector("1234")).ok());
  ASSERT_TRUE(file.add("a", ElementType::kF16, {1, 2}, to_vector("abcd")).ok());
  file.metadata() = {{"k\"", "v\n"}, {"format", "pt"}};
  ASSERT_TRUE(write_safetensors(directory / "f", file).ok());
  const std::string json = R"({"__metadata__":{"format":"pt","k\"":"v\n"},)"
                           R"("c":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                           R"("a":{"dtype":"F16","shape":[1,2],"data_offsets":[4,8]},)"
                           R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  const std::string padded = json + std::string((8 - json.size() % 8) % 8, ' ');
  EXPECT_EQ(read_text(directory / "f"), test::safetensors_bytes(padded, "1234abcdxyz"));
  TensorFile empty;
  ASSERT_TRUE(write_safetensors(directory / "e", empty).ok());
  EXPECT_EQ(read_text(directory / "e"), test::safetensors_bytes("{}      ", ""));
}

TEST(SafetensorsWriterTest, RandomFilesComeBackAlignedAndRepeatable) {
  const test::TempDirectory directory;
  test::Rng rng;
  for (int round = 0; round < 50; ++round) {
    TensorFile file;
    for (int64_t i = rng.integer(0, 12); i > 0; --i) {
      const auto type =
          static_cast<ElementType>(rng.integer(0, static_cast<int>(ElementType::kC64)));
      std::vector<int64_t> shape;
      for (int64_t rank = rng.integer(0, 4); rank > 0; --rank) shape.push_back(rng.integer(0, 5));
      shape.push_back(8 * rng.integer(0, 3));  // whole bytes for every type
      std::vector<std::byte> data(static_cast<size_t>(*checked_bytes(type, shape, "t")));
      for (std::byte& byte : data) byte = static_cast<std::byte>(rng.byte());
      ASSERT_TRUE(file.add("t\xC3\xA4\"" + std::to_string(i), type, shape, data).ok());
    }
    file.metadata()["round"] = std::to_string(round);
    ASSERT_TRUE(write_safetensors(directory / "f", file).ok());
    ASSERT_TRUE(write_safetensors(directory / "again", file).ok());
    EXPECT_EQ(read_text(directory / "f"), read_text(directory / "again"));
    const Expected<TensorFile> back = open_safetensors(directory / "f");
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->metadata(), file.metadata());
    ASSERT_EQ(back->tensors().size(), file.tensors().size());
    for (const auto& [name, tensor] : file.tensors()) {
      const TensorView read = *back->get(name);
      EXPECT_EQ(read.dtype, tensor.dtype);
      EXPECT_EQ(read.shape, tensor.shape);
      EXPECT_EQ(test::to_text(read.data), test::to_text(tensor.data));
      const auto size = static_cast<uintptr_t>(std::max(1, bits_of(read.dtype) / 8));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data.data()) % std::min<uintptr_t>(size, 8), 0u);
    }
  }
}

TEST(SafetensorsWriterTest, InputMayBeItsOwnOutput) {
  const test::TempDirectory directory;
  TensorFile file;
  ASSERT_TRUE(file.add("a", ElementType::kU8, {5}, to_vector("hello")).ok());
  ASSERT_TRUE(write_safetensors(directory / "f", file).ok());
  Expected<TensorFile> mapped = open_safetensors(directory / "f");
  ASSERT_TRUE(mapped.ok());
  ASSERT_TRUE(mapped->add("b", ElementType::kU8, {1}, to_vector("!")).ok());
  ASSERT_TRUE(write_safetensors(directory / "f", *mapped).ok());
  EXPECT_EQ(test::to_text(mapped->get("a")->data), "hello");
  EXPECT_EQ(open_safetensors(directory / "f")->tensors().size(), 2u);
}

TEST(SafetensorsWriterTest, RefusesNamesItCouldNotReadBack) {
  const test::TempDirectory directory;
  for (const char* name : {"__metadata__", "a\nb", "\x7F"}) {
    TensorFile file;
    ASSERT_TRUE(file.add(name, ElementType::kU8, {0}, {}).ok());
    EXPECT_TRUE(fails_with(write_safetensors(directory / "f", file), StatusCode::kInvalidArgument,
                           "tensor name"));
  }
  TensorFile bad_utf8;
  ASSERT_TRUE(bad_utf8.add("\xFF", ElementType::kU8, {0}, {}).ok());
  EXPECT_TRUE(fails_with(write_safetensors(directory / "f", bad_utf8), StatusCode::kInvalidArgument,
                         "UTF-8"));
  TensorFile bad_metadata;
  bad_metadata.metadata()["x"] = "\xC3";
  EXPECT_TRUE(fails_with(write_safetensors(directory / "f", bad_metadata),
                         StatusCode::kInvalidArgument, "UTF-8"));
  EXPECT_TRUE(directory.entries().empty());
}

TEST(SafetensorsWriterTest, FailureLeavesTheOldFile) {
  const test::TempDirectory directory;
  const std::string path = directory / "f";
  test::write_text(path, "old");
  TensorFile file;
  ASSERT_TRUE(file.add("a", ElementType::kU8, {1 << 20}, std::vector<std::byte>(1 << 20)).ok());
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 16, 1 << 16};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    _exit(fails_with(write_safetensors(path, file), StatusCode::kIoError, "File too large") ? 0
                                                                                            : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(directory.entries(), std::vector<std::string>{"f"});
  EXPECT_TRUE(
      fails_with(write_safetensors(directory / "no/f", file), StatusCode::kNotFound, "no/f"));
}

}  // namespace
}  // namespace dualgemm::checkpoint
