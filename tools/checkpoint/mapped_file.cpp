#include "tools/checkpoint/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/printable.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr size_t kLongestShownPath = 1200;  // a message has at most 1500 bytes

Status system_error(const std::string& path, int error, const std::string& rule) {
  const StatusCode code =
      error == ENOENT || error == ENOTDIR ? StatusCode::kNotFound : StatusCode::kIoError;
  return Status::error(code, path, std::strerror(error), rule);
}

Expected<int64_t> size_of_regular(int fd, const std::string& path) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return system_error(path, errno, "must be a readable file");
  if (S_ISDIR(info.st_mode)) return Status::invalid(path, "a directory", "must be a regular file");
  if (!S_ISREG(info.st_mode)) {
    return Status::invalid(path, "a pipe, socket or device", "must be a regular file");
  }
  return static_cast<int64_t>(info.st_size);
}

}  // namespace

Expected<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  if (path.empty()) return Status::invalid("file path", "''", "must name a file");
  // O_NONBLOCK: opening a pipe without a writer must not hang; regular files ignore it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error(path, errno, "must be a readable file");
  const Expected<int64_t> size = size_of_regular(fd, path);
  if (!size || *size == 0) {  // mmap refuses length 0
    close(fd);
    if (!size) return size.status();
    return std::shared_ptr<const MappedFile>(new MappedFile(path, {}));
  }
  void* address = mmap(nullptr, static_cast<size_t>(*size), PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);  // the mapping keeps the file
  if (address == MAP_FAILED) return system_error(path, error, "must fit in the address space");
  const std::span bytes(static_cast<const std::byte*>(address), static_cast<size_t>(*size));
  const std::shared_ptr<MappedFile> file(new MappedFile(path, bytes));  // unmaps from here on
  file->range_ = ranges_.add(
      {bytes.data(), bytes.data() + bytes.size(), core::printable(path, kLongestShownPath)});
  return std::shared_ptr<const MappedFile>(file);
}

constinit MappedFile::Ranges MappedFile::ranges_;

const char* MappedFile::path_at(const void* address) noexcept {
  const auto* byte = static_cast<const std::byte*>(address);
  const Range* found =
      ranges_.find([byte](const Range& range) { return range.begin <= byte && byte < range.end; });
  return found == nullptr ? nullptr : found->shown_path.c_str();
}

MappedFile::~MappedFile() {
  if (range_ != nullptr) Ranges::remove(range_);
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace dualgemm::checkpoint
