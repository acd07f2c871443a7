#include "tools/checkpoint/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
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

// Where the bytes will really go: a symbolic link is followed, even one to a file that does not
// exist yet.
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

}  // namespace

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      directory_(std::move(other.directory_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      bytes_written_(other.bytes_written_) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = std::move(other.path_);
    directory_ = std::move(other.directory_);
    temporary_ = std::exchange(other.temporary_, {});
    fd_ = std::exchange(other.fd_, -1);
    bytes_written_ = other.bytes_written_;
  }
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
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
    fd_ = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kNewFileMode);
    if (fd_ >= 0) {
      temporary_ = name;
      return {};
    }
    if (errno != EEXIST) break;
  }
  return io_error(path_, "its directory must exist and be writable", errno);
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
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

Status AtomicFile::put_under_name() {
  if (temporary_.empty()) {
    const std::string self = fmt::format("/proc/self/fd/{}", fd_);
    const auto link_as = [&self](const std::string& name) {
      return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    if (link_as(path_)) return {};
    if (errno != EEXIST) return io_error(path_, "the finished file could not be named", errno);
    for (int attempt = 0; attempt < kNameAttempts && temporary_.empty(); ++attempt) {
      const std::string name = temporary_name(path_);
      if (link_as(name))
        temporary_ = name;
      else if (errno != EEXIST)
        break;
    }
    if (temporary_.empty()) return io_error(path_, "the finished file could not be named", errno);
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return io_error(path_, "the finished file could not be renamed to it", errno);
  }
  temporary_.clear();
  return {};
}

Status AtomicFile::commit() {
  if (fd_ < 0) return Status::invalid("commit", "no open file", "must be called once");
  if (fsync(fd_) != 0) return io_error(path_, "the data could not be made durable", errno);
  DUALGEMM_TRY(put_under_name());
  const int error = close(std::exchange(fd_, -1)) != 0 ? errno : 0;
  if (error != 0 && error != EINTR) return io_error(path_, "the file could not be closed", error);
  // The name is in place; some filesystems refuse to sync a directory, which costs durability only.
  const int directory = open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
  return {};
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.status();
  DUALGEMM_TRY(file->write(bytes));
  return file->commit();
}

}  // namespace dualgemm::checkpoint
