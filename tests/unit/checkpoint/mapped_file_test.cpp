#include "checkpoint/mapped_file.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::fails_with;

TEST(MappedFileTest, HoldsTheBytesOfAFile) {
  const test::TempDirectory directory;
  const std::string text(10'000, 'q');
  test::write_text(directory / "f", text);
  const auto mapped = MappedFile::open(directory / "f");
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(test::to_text((*mapped)->bytes()), text);
  ASSERT_EQ(unlink((directory / "f").c_str()), 0);
  EXPECT_EQ(test::to_text((*mapped)->bytes()), text);  // the mapping keeps the content
}

TEST(MappedFileTest, EmptyFileIsEmpty) {
  const test::TempDirectory directory;
  test::write_text(directory / "f", "");
  const auto mapped = MappedFile::open(directory / "f");
  ASSERT_TRUE(mapped.ok());
  EXPECT_TRUE((*mapped)->bytes().empty());
}

TEST(MappedFileTest, RefusesWhatIsNoFile) {
  const test::TempDirectory directory;
  EXPECT_TRUE(
      fails_with(MappedFile::open(directory / "none").status(), StatusCode::kNotFound, "none"));
  EXPECT_TRUE(
      fails_with(MappedFile::open("").status(), StatusCode::kInvalidArgument, "name a file"));
  EXPECT_TRUE(fails_with(MappedFile::open(directory.path()).status(), StatusCode::kInvalidArgument,
                         "a directory"));
  EXPECT_TRUE(
      fails_with(MappedFile::open("/dev/null").status(), StatusCode::kInvalidArgument, "device"));
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(fails_with(MappedFile::open(directory / "pipe").status(),
                         StatusCode::kInvalidArgument, "pipe"));
  test::write_text(directory / "f", "x");
  EXPECT_TRUE(
      fails_with(MappedFile::open(directory / "f/x").status(), StatusCode::kNotFound, "f/x"));
}

TEST(MappedFileTest, UnreadableFileIsAnIoError) {
  const test::TempDirectory directory;
  test::write_text(directory / "f", "x");
  ASSERT_EQ(chmod((directory / "f").c_str(), 0), 0);
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  const std::string path = directory / "f";
  const pid_t child = fork();
  if (child == 0) {  // root reads everything: give that up first
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    const auto mapped = MappedFile::open(path);
    const bool expected = fails_with(mapped.status(), StatusCode::kIoError, "Permission denied");
    _exit(expected ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace dualgemm::checkpoint
