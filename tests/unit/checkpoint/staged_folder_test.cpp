// Folders and groups of files that appear together.
#include "tools/checkpoint_jobs/staged_folder.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "io_test_support.hpp"
#include "tools/checkpoint_jobs/output_set.hpp"

namespace dualgemm::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::fails_with;
using test::read_text;
using Names = std::vector<std::string>;

void put(StagedFolder& folder, const std::string& name, const std::string& text) {
  ASSERT_TRUE(write_file(folder.path(name), test::as_bytes(text)).ok());
}

TEST(StagedFolderTest, AppearsAtCommit) {
  const test::TempDirectory directory;
  const std::string target = directory / "model";
  {
    Expected<StagedFolder> folder = StagedFolder::create(target + "/");
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    put(*folder, "a", "A");
    EXPECT_FALSE(fs::exists(target));
    ASSERT_TRUE(folder->commit().ok());
    EXPECT_TRUE(fails_with(folder->commit(), StatusCode::kInvalidArgument, "once"));
  }
  EXPECT_EQ(read_text(target + "/a"), "A");
  EXPECT_EQ(directory.entries(), Names{"model"});
}

TEST(StagedFolderTest, AbandonedLeavesNothing) {
  const test::TempDirectory directory;
  {
    Expected<StagedFolder> folder = StagedFolder::create(directory / "model");
    ASSERT_TRUE(folder.ok());
    put(*folder, "a", "A");
  }
  EXPECT_EQ(directory.entries(), Names{});
}

TEST(StagedFolderTest, ReplacesWhatGoesAndKeepsWhatStays) {
  const test::TempDirectory directory;
  const std::string target = directory / "model";
  fs::create_directories(target + "/.git/objects");
  test::write_text(target + "/.git/objects/x", "git");
  test::write_text(target + "/old", "O");
  test::write_text(target + "/stays", "S");
  test::write_text(target + "/a", "before");
  fs::create_symlink("nowhere", target + "/link");
  ASSERT_EQ(chmod(target.c_str(), 0750), 0);
  Expected<StagedFolder> folder = StagedFolder::create(target);
  ASSERT_TRUE(folder.ok());
  put(*folder, "a", "after");
  EXPECT_EQ(read_text(target + "/a"), "before");
  ASSERT_TRUE(folder->commit({"old"}).ok());
  EXPECT_EQ(read_text(target + "/a"), "after");
  EXPECT_EQ(read_text(target + "/stays"), "S");
  EXPECT_EQ(read_text(target + "/.git/objects/x"), "git");
  EXPECT_TRUE(fs::is_symlink(target + "/link"));
  EXPECT_FALSE(fs::exists(target + "/old"));
  struct stat info = {};
  ASSERT_EQ(stat(target.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0750u);
  EXPECT_EQ(directory.entries(), Names{"model"});
}

TEST(StagedFolderTest, StaysTheSameFolderWhereItCannotBeReplaced) {
  const test::TempDirectory directory;
  const std::string target = directory / "mounted", before = fs::current_path();
  ASSERT_EQ(mkdir(target.c_str(), 0700), 0);
  const auto fill = [&](const std::string& name) {
    Expected<StagedFolder> folder = StagedFolder::create(name);
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    put(*folder, "a", "A");
    ASSERT_TRUE(folder->commit({"old"}).ok());
  };
  struct stat info = {};
  ASSERT_EQ(stat(target.c_str(), &info), 0);
  const ino_t number = info.st_ino;
  test::write_text(target + "/old", "O");
  fs::current_path(target);
  fill(".");
  fs::current_path(before);
  ASSERT_EQ(stat(target.c_str(), &info), 0);
  EXPECT_EQ(info.st_ino, number);
  EXPECT_EQ(read_text(target + "/a"), "A");
  EXPECT_FALSE(fs::exists(target + "/old"));
  if (mount("none", target.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "mounting a small tmpfs: " << std::strerror(errno);
  fill(target);
  EXPECT_EQ(read_text(target + "/a"), "A");
  EXPECT_EQ(std::distance(fs::directory_iterator(target), {}), 1);
  EXPECT_EQ(umount(target.c_str()), 0);
}

// What a process that is gone left is removed, what another one holds is not.
TEST(StagedFolderTest, SweepsWhatNobodyHolds) {
  const test::TempDirectory directory;
  const std::string stale = directory / ".model.dualgemm-1-0.tmp", other = directory / ".x.tmp";
  fs::create_directory(stale);
  test::write_text(stale + "/a", "A");
  fs::create_directory(other);
  Expected<StagedFolder> first = StagedFolder::create(directory / "model");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->swept(), Names{stale});
  Expected<StagedFolder> second = StagedFolder::create(directory / "model");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->swept(), Names{});
  put(*first, "a", "first");
  ASSERT_TRUE(first->commit().ok());
  EXPECT_EQ(read_text(directory / "model/a"), "first");
  EXPECT_TRUE(fs::exists(other));
}

TEST(StagedFolderTest, NoParent) {
  const test::TempDirectory directory;
  EXPECT_TRUE(fails_with(StagedFolder::create(directory / "no/model").status(),
                         StatusCode::kNotFound, "its parent must exist"));
}

TEST(OutputSetTest, AllOrNone) {
  const test::TempDirectory directory;
  test::write_text(directory / "old", "before");
  {
    OutputSet files;
    ASSERT_TRUE(files.add(directory / "new", std::string("N")).ok());
    ASSERT_TRUE(files.add(directory / "old", std::string("after")).ok());
    EXPECT_EQ(directory.entries(), Names{"old"});
    ASSERT_TRUE(files.commit().ok());
  }
  EXPECT_EQ(directory.entries(), (Names{"new", "old"}));
  EXPECT_EQ(read_text(directory / "old"), "after");
  // The third cannot have its name: a folder took it meanwhile. The first two are taken back.
  OutputSet files;
  ASSERT_TRUE(files.add(directory / "old", std::string("later")).ok());
  ASSERT_TRUE(files.add(directory / "fresh", std::string("F")).ok());
  ASSERT_TRUE(files.add(directory / "taken", std::string("T")).ok());
  fs::create_directory(directory / "taken");
  EXPECT_FALSE(files.commit().ok());
  EXPECT_EQ(directory.entries(), (Names{"new", "old", "taken"}));
  EXPECT_EQ(read_text(directory / "old"), "after");
}

TEST(UnfinishedTest, ARegisteredNameIsRemoved) {
  const test::TempDirectory directory;
  test::write_text(directory / "file", "x");
  fs::create_directory(directory / "folder");
  test::write_text(directory / "folder/file", "x");
  test::write_text(directory / "done", "x");
  Unfinished folder({directory / "folder", true}), inside({directory / "folder/file", false}),
      file({directory / "file", false}), done({directory / "done", false});
  done.finish();
  EXPECT_TRUE(remove_unfinished(SIGTERM));
  EXPECT_EQ(directory.entries(), Names{"done"});
}

}  // namespace
}  // namespace dualgemm::checkpoint
