#include "checkpoint/atomic_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "io_test_support.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::as_bytes;
using test::fails_with;
using test::read_text;
using Names = std::vector<std::string>;

// Runs `body` in a child process, whose exit status is what `body` returned.
int status_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

class AtomicFileTest : public ::testing::TestWithParam<AtomicFile::Staging> {
 protected:
  Expected<AtomicFile> create(const std::string& path) {
    return AtomicFile::create(path, GetParam());
  }
  Status write(const std::string& path, std::string_view text) {
    Expected<AtomicFile> file = create(path);
    if (!file) return file.status();
    DUALGEMM_TRY(file->write(as_bytes(text)));
    return file->commit();
  }
  test::TempDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Staging, AtomicFileTest,
                         ::testing::Values(AtomicFile::Staging::kUnnamed,
                                           AtomicFile::Staging::kNamed),
                         [](const auto& info) {
                           return info.param == AtomicFile::Staging::kUnnamed ? "Unnamed" : "Named";
                         });

TEST_P(AtomicFileTest, AppearsAtCommitOnly) {
  const std::string path = directory_ / "out";
  Expected<AtomicFile> file = create(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->write(as_bytes("hello ")).ok());
  ASSERT_TRUE(file->write(as_bytes("world")).ok());
  EXPECT_EQ(file->bytes_written(), 11);
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(read_text(path), "hello world");
  EXPECT_EQ(directory_.entries(), Names{"out"});
  EXPECT_TRUE(fails_with(file->commit(), StatusCode::kInvalidArgument, "once"));
}

TEST_P(AtomicFileTest, AbandonedLeavesNothingAndTheOldFileAlone) {
  const std::string path = directory_ / "out";
  test::write_text(path, "old");
  {
    Expected<AtomicFile> file = create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write(as_bytes("new")).ok());
    AtomicFile moved = *std::move(file);
    ASSERT_TRUE(moved.write(as_bytes("er")).ok());
    EXPECT_EQ(read_text(path), "old");
  }
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(directory_.entries(), Names{"out"});
}

TEST_P(AtomicFileTest, ReplacesAndKeepsTheMode) {
  const std::string path = directory_ / "out";
  test::write_text(path, "old");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_TRUE(write(path, "new").ok());
  EXPECT_EQ(read_text(path), "new");
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  EXPECT_EQ(directory_.entries(), Names{"out"});
}

TEST_P(AtomicFileTest, NewFileObeysTheUmask) {
  const mode_t before = umask(027);
  const Status status = write(directory_ / "out", "x");
  umask(before);
  ASSERT_TRUE(status.ok());
  struct stat info = {};
  ASSERT_EQ(stat((directory_ / "out").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST_P(AtomicFileTest, FileThatAppearsMeanwhileIsReplacedWhole) {
  const std::string path = directory_ / "out";
  Expected<AtomicFile> file = create(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write(as_bytes("ours")).ok());
  test::write_text(path, "theirs, longer");
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(read_text(path), "ours");
  EXPECT_EQ(directory_.entries(), Names{"out"});
}

TEST_P(AtomicFileTest, SymbolicLinksAreFollowed) {
  test::write_text(directory_ / "target", "old");
  ASSERT_EQ(symlink("target", (directory_ / "link").c_str()), 0);
  ASSERT_EQ(symlink((directory_ / "fresh").c_str(), (directory_ / "dangling").c_str()), 0);
  ASSERT_TRUE(write(directory_ / "link", "new").ok());
  ASSERT_TRUE(write(directory_ / "dangling", "made").ok());
  EXPECT_EQ(read_text(directory_ / "target"), "new");
  EXPECT_EQ(read_text(directory_ / "fresh"), "made");
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "dangling"));
}

TEST_P(AtomicFileTest, RefusesWhatRenameWouldDestroyOrCannotReach) {
  ASSERT_EQ(mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  for (const std::string& path :
       {directory_.path(), directory_ / "pipe", std::string("/dev/null")}) {
    EXPECT_TRUE(fails_with(create(path).status(), StatusCode::kInvalidArgument, "regular file"))
        << path;
  }
  EXPECT_TRUE(fails_with(create("").status(), StatusCode::kInvalidArgument, "must name a file"));
  EXPECT_TRUE(
      fails_with(create(directory_ / "x/").status(), StatusCode::kInvalidArgument, "name a file"));
  EXPECT_TRUE(
      fails_with(create(directory_ / "no/such").status(), StatusCode::kNotFound, "directory"));
  EXPECT_EQ(directory_.entries(), Names{"pipe"});
}

TEST_P(AtomicFileTest, LongNamesStillHaveATemporaryName) {
  const std::string path = directory_ / std::string(255, 'n');  // NAME_MAX
  test::write_text(path, "old");
  ASSERT_TRUE(write(path, "new").ok());
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(directory_.entries().size(), 1u);
}

// The file size limit stands for every way in which write(2) stops short: part of the bytes fit,
// then an error.
TEST_P(AtomicFileTest, WriteThatStopsShortLeavesTheOldFile) {
  const std::string path = directory_ / "out";
  test::write_text(path, "old");
  const int status = status_of_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const std::string large(300'000, 'x');
    const Status written = write(path, large);
    return fails_with(written, StatusCode::kIoError, "File too large") ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(directory_.entries(), Names{"out"});
}

TEST_P(AtomicFileTest, FullDiskLeavesTheOldFile) {
  const std::string mount_point = directory_ / "disk";
  ASSERT_EQ(mkdir(mount_point.c_str(), 0700), 0);
  if (mount("none", mount_point.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs: " << std::strerror(errno);
  }
  const std::string path = mount_point + "/out";
  test::write_text(path, "old");
  const Status status = write(path, std::string(1 << 20, 'x'));
  EXPECT_TRUE(fails_with(status, StatusCode::kIoError, "No space left"));
  EXPECT_EQ(read_text(path), "old");
  const auto entries = std::distance(std::filesystem::directory_iterator(mount_point), {});
  EXPECT_EQ(umount(mount_point.c_str()), 0);
  EXPECT_EQ(entries, 1);
}

// A child writes without end and is killed in the middle.
void kill_while_writing(AtomicFile::Staging staging, const std::string& path, int signal_number) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    signal(signal_number, SIG_DFL);  // a shell's background jobs inherit that SIGINT is ignored
    Expected<AtomicFile> file = AtomicFile::create(path, staging);
    const std::string chunk(1 << 16, 'x');
    for (int i = 0; file.ok() && file->write(as_bytes(chunk)).ok(); ++i) {
      if (i == 16 && ::write(ready[1], "x", 1) != 1) break;
      if (i > 16) usleep(1000);
    }
    _exit(1);
  }
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  close(ready[0]);
  ASSERT_EQ(kill(child, signal_number), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal_number);
}

TEST_P(AtomicFileTest, KilledWhileWritingLeavesTheOldFile) {
  for (const int signal_number : {SIGKILL, SIGTERM, SIGINT}) {
    const std::string path = directory_ / "out", fresh = directory_ / "fresh";
    test::write_text(path, "old");
    kill_while_writing(GetParam(), path, signal_number);
    kill_while_writing(GetParam(), fresh, signal_number);
    EXPECT_EQ(read_text(path), "old");
    EXPECT_FALSE(std::filesystem::exists(fresh));
    for (const std::string& name : directory_.entries()) {
      if (name == "out") continue;
      // A filesystem without O_TMPFILE keeps what was written under a name that cannot be mistaken.
      EXPECT_EQ(GetParam(), AtomicFile::Staging::kNamed) << name;
      EXPECT_TRUE(name[0] == '.' && name.ends_with(".tmp") &&
                  name.find(".dualgemm-") != std::string::npos)
          << name;
      std::filesystem::remove(directory_ / name);
    }
  }
}

// A reader that opens the name again and again sees the old content or the new, never anything
// else.
TEST_P(AtomicFileTest, ReaderSeesOldOrNew) {
  const std::string path = directory_ / "out", old(100'000, 'o'), fresh(200'000, 'n');
  test::write_text(path, old);
  const pid_t writer = fork();
  if (writer == 0) {
    for (int i = 0; i < 40; ++i) {
      if (!write(path, i % 2 == 0 ? fresh : old).ok()) _exit(1);
    }
    _exit(0);
  }
  int status = 0, looked = 0;
  while (waitpid(writer, &status, WNOHANG) == 0) {
    const std::string seen = read_text(path);
    ASSERT_TRUE(seen == old || seen == fresh) << seen.size() << " bytes";
    ++looked;
  }
  EXPECT_EQ(status, 0);
  EXPECT_GT(looked, 0);
}

TEST(WriteFileTest, WritesEmptyAndFull) {
  const test::TempDirectory directory;
  ASSERT_TRUE(write_file(directory / "empty", {}).ok());
  EXPECT_EQ(read_text(directory / "empty"), "");
  ASSERT_TRUE(write_file(directory / "full", as_bytes("x")).ok());
  EXPECT_EQ(read_text(directory / "full"), "x");
}

}  // namespace
}  // namespace dualgemm::checkpoint
