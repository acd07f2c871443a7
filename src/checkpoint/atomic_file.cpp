#include "checkpoint/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

namespace dualgemm::checkpoint {
namespace {

constexpr mode_t kNewFileMode = 0666;               // the umask takes its part
constexpr size_t kLargestWrite = size_t{64} << 20;  // a signal is answered between two of these
constexpr int kNameAttempts = 100;

Status io_error(const std::string& path, const std::string& what, int error) {
  const StatusCode code = error == ENOENT ? StatusCode::kNotFound : StatusCode::kIoError;
  return Status::error(code, path, std::strerror(error), what);
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  const size_t slash = path.rfind('/');
  const size_t name_begin = slash == std::string::npos ? 0 : slash + 1;
  const std::string name = path.substr(name_begin, 200);  // NAME_MAX is 255 with prefix and suffix
  return fmt::format("{}.{}.dualgemm-{}-{}.tmp", path.substr(0, name_begin), name, getpid(),
                     counter.fetch_add(1));
}

// Writing beyond RLIMIT_FSIZE raises SIGXFSZ in the thread that writes, and ends the process unless
// somebody ignores it. Held back and taken away, what remains is the error EFBIG.
class SizeLimitSignalHeld {
 public:
  SizeLimitSignalHeld() noexcept {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~SizeLimitSignalHeld() {
    constexpr timespec kAtOnce{0, 0};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &kAtOnce);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SizeLimitSignalHeld(const SizeLimitSignalHeld&) = delete;
  SizeLimitSignalHeld& operator=(const SizeLimitSignalHeld&) = delete;

 private:
  sigset_t signal_, before_;
  bool was_pending_ = false;
};

}  // namespace

std::string resolve_links(std::string path) {
  for (int depth = 0; depth < 40; ++depth) {  // the kernel's own limit
    char target[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), target, sizeof(target));
    if (length <= 0 || length == static_cast<ssize_t>(sizeof(target))) break;
    const std::string link(target, static_cast<size_t>(length));
    const size_t slash = path.rfind('/');
    const bool relative = link[0] != '/' && slash != std::string::npos;
    path = relative ? path.substr(0, slash + 1) + link : link;
  }
  return path;
}

// Some filesystems refuse to sync a directory, which costs durability only.
void sync_directory(const std::string& path) noexcept {
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  fsync(directory);
  close(directory);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept { *this = std::move(other); }

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = std::move(other.path_);
    directory_ = std::move(other.directory_);
    temporary_ = std::exchange(other.temporary_, {});
    kept_ = std::exchange(other.kept_, {});
    unfinished_temporary_ = std::move(other.unfinished_temporary_);
    unfinished_kept_ = std::move(other.unfinished_kept_);
    fd_ = std::exchange(other.fd_, -1);
    name_ = std::exchange(other.name_, Name::kNone);
    bytes_written_ = other.bytes_written_;
  }
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  for (std::string* name : {&temporary_, &kept_}) {
    if (!name->empty()) unlink(name->c_str());
    name->clear();
  }
  unfinished_temporary_.finish();
  unfinished_kept_.finish();
}

Expected<AtomicFile> AtomicFile::create(const std::string& path, Staging staging) {
  if (path.empty() || path.back() == '/') {
    return Status::invalid("output path", fmt::format("'{}'", path), "must name a file");
  }
  struct stat info = {};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    return Status::invalid(path, S_ISDIR(info.st_mode) ? "a directory" : "a pipe, socket or device",
                           "output must go to a regular file");
  }
  AtomicFile file;
  file.path_ = resolve_links(path);
  file.directory_ = directory_of(file.path_);
  DUALGEMM_TRY(file.open_unnamed_or_temporary(staging));
  if (exists && fchmod(file.fd_, info.st_mode & 07777) != 0) {
    return io_error(path, "the mode of the file it replaces could not be kept", errno);
  }
  return file;
}

Status AtomicFile::open_unnamed_or_temporary(Staging staging) {
  // Naming an unnamed file goes through /proc (put_under_name); a chroot may lack it.
  if (staging == Staging::kUnnamed && access("/proc/self/fd", X_OK) == 0) {
    fd_ = open(directory_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kNewFileMode);
    if (fd_ >= 0) return {};
    // Kernels and filesystems without O_TMPFILE answer in one of these three ways.
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
      return io_error(path_, "its directory must exist and be writable", errno);
    }
  }
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    const std::string name = temporary_name(path_);
    unfinished_temporary_ = Unfinished({name, false});  // before the file is there
    fd_ = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kNewFileMode);
    if (fd_ >= 0) {
      temporary_ = name;
      return {};
    }
    const int error = errno;
    unfinished_temporary_.finish();
    errno = error;
    if (error != EEXIST) break;
  }
  return io_error(path_, "its directory must exist and be writable", errno);
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  const SizeLimitSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EFAULT) {  // the bytes lie in a mapped file that was cut meanwhile
      return Status::error(StatusCode::kIoError, path_, "what was to be written is gone",
                           "the files that are read must not change meanwhile");
    }
    if (written <= 0) {
      return io_error(
          path_,
          fmt::format("{} bytes were written before; nothing is left behind", bytes_written_),
          written < 0 ? errno : ENOSPC);
    }
    bytes_written_ += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

// The unnamed file under a temporary name, as linkat() cannot replace.
Status AtomicFile::give_temporary_name() {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    const std::string name = temporary_name(path_);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      unfinished_temporary_ = Unfinished({name, false});
      temporary_ = name;
      return {};
    }
    if (errno != EEXIST) break;
  }
  return io_error(path_, "the finished file could not be named", errno);
}

// A second name for the file that will be replaced. Filesystems without links (FAT) keep none.
void AtomicFile::keep_old_file() {
  const std::string name = temporary_name(path_);
  if (link(path_.c_str(), name.c_str()) != 0) return;
  kept_ = name;
  unfinished_kept_ = Unfinished({name, false});
}

Status AtomicFile::publish(Replaced replaced) {
  if (fd_ < 0 || name_ != Name::kNone)
    return Status::invalid("publish", "no open file", "must be called once");
  const Publishing publishing;
  if (temporary_.empty()) {
    const std::string self = fmt::format("/proc/self/fd/{}", fd_);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      name_ = Name::kFresh;
      return {};
    }
    if (errno != EEXIST) return io_error(path_, "the finished file could not be named", errno);
    DUALGEMM_TRY(give_temporary_name());
  }
  struct stat info = {};
  const bool replaces = lstat(path_.c_str(), &info) == 0 || errno != ENOENT;
  if (replaces && replaced == Replaced::kKept) keep_old_file();
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    return io_error(path_, "the finished file could not be renamed to it", errno);
  temporary_.clear();
  unfinished_temporary_.finish();
  name_ = replaces ? Name::kReplaced : Name::kFresh;
  return {};
}

void AtomicFile::take_back() noexcept {
  if (name_ == Name::kFresh) unlink(path_.c_str());
  if (!kept_.empty() && rename(kept_.c_str(), path_.c_str()) == 0) kept_.clear();
  name_ = Name::kNone;
  discard();
}

Status AtomicFile::settle() {
  const int error = close(std::exchange(fd_, -1)) != 0 ? errno : 0;
  discard();
  if (error != 0 && error != EINTR) return io_error(path_, "the file could not be closed", error);
  sync_directory(directory_);
  return {};
}

Status AtomicFile::sync() {
  if (fd_ < 0) return Status::invalid("commit", "no open file", "must be called once");
  return fsync(fd_) == 0 ? Status() : io_error(path_, "the data could not be made durable", errno);
}

Status AtomicFile::commit() {
  DUALGEMM_TRY(sync());
  DUALGEMM_TRY(publish(Replaced::kLost));
  return settle();
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.status();
  DUALGEMM_TRY(file->write(bytes));
  return file->commit();
}

}  // namespace dualgemm::checkpoint
