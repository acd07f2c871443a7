// A regular file, mapped read-only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "dualgemm/status.hpp"
#include "tools/checkpoint/signal_safe_list.hpp"

namespace dualgemm::checkpoint {

// The size is taken from fstat once. A file that another process shrinks while it is mapped raises
// SIGBUS on access: the operating system offers no way to turn that into a Status. A program's
// handler learns from path_at() which file it was. A file replaced by rename (as AtomicFile does)
// stays readable.
class MappedFile {
 public:
  // kNotFound: no such file. kInvalidArgument: a directory, pipe or device. kIoError: anything else
  // the system refuses.
  static Expected<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  const std::string& path() const noexcept { return path_; }

  // The file that is mapped at `address`, as a message shows it, or null; for signal handlers.
  static const char* path_at(const void* address) noexcept;

 private:
  struct Range {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    std::string shown_path;
  };
  using Ranges = SignalSafeList<Range>;
  static Ranges ranges_;

  MappedFile(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}
  std::string path_;
  std::span<const std::byte> bytes_;
  Ranges::Entry* range_ = nullptr;
};

}  // namespace dualgemm::checkpoint
