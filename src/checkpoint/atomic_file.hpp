// Output that appears under its name complete or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "checkpoint/unfinished.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// Everything is written to a file without a name (O_TMPFILE) in the target's directory and synced;
// then
//   - target does not exist: given its name with linkat(2): one atomic step;
//   - target exists: given a temporary name ".NAME.dualgemm-PID-N.tmp" and renamed over the target,
//     because linkat cannot replace.
// So kill -9 during the long part, the writing, leaves nothing; between the two last calls it can
// leave a complete temporary file, never a half-written target. Filesystems without O_TMPFILE (NFS,
// FAT, FUSE) get the temporary name from the start: failures, destruction and a handler that calls
// remove_unfinished() remove it, kill -9 leaves it, unmistakable by its suffix. A target that is a
// symbolic link is followed; its mode bits are kept when it is replaced. Devices, pipes and
// directories are refused: renaming over /dev/stdout would replace the device.
class AtomicFile {
 public:
  // kNamed: as on filesystems without O_TMPFILE, everywhere; for tests and for those who doubt
  // their filesystem.
  enum class Staging { kUnnamed, kNamed };
  static Expected<AtomicFile> create(const std::string& path, Staging staging = Staging::kUnnamed);
  ~AtomicFile();  // not committed: leaves nothing
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // kIoError with the system's reason (disk full, file size limit, ...); no SIGXFSZ is raised.
  // After an error only destruction is useful.
  Status write(std::span<const std::byte> bytes);
  Status write(const void* data, size_t size) {
    return write({static_cast<const std::byte*>(data), size});
  }
  // Syncs file and directory and puts the file under its name. Once.
  Status commit();

  // The parts of commit(), for several files that appear together (OutputSet).
  Status sync();  // data to the disk
  // The name. What stood there can be kept under a temporary one, where the filesystem has links.
  enum class Replaced { kKept, kLost };
  Status publish(Replaced replaced = Replaced::kKept);
  // Undoes publish(): nothing, or the old file, has the name again.
  void take_back() noexcept;
  Status settle();  // the old file is let go, the directory synced

  int64_t bytes_written() const noexcept { return bytes_written_; }
  const std::string& path() const noexcept { return path_; }

 private:
  AtomicFile() = default;
  Status open_unnamed_or_temporary(Staging staging);
  Status give_temporary_name();
  void keep_old_file();
  void discard() noexcept;

  std::string path_;       // final name, symbolic links resolved
  std::string directory_;  // that holds it
  std::string temporary_;  // empty while the file has no name
  std::string kept_;       // another name of the file that publish() replaced
  Unfinished unfinished_temporary_, unfinished_kept_;
  int fd_ = -1;
  enum class Name { kNone, kFresh, kReplaced } name_ = Name::kNone;
  int64_t bytes_written_ = 0;
};

// Where the bytes of a file of this name will really go: a symbolic link is followed, even one to a
// file that does not exist yet.
std::string resolve_links(std::string path);

// Names in the directory survive a loss of power from here on.
void sync_directory(const std::string& path) noexcept;

// The whole of `bytes` to `path`.
Status write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace dualgemm::checkpoint
