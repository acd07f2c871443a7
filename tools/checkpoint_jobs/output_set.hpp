// Several files that appear together.
#pragma once

#include <list>
#include <string>

#include "checkpoint/atomic_file.hpp"

namespace dualgemm::checkpoint {

// All are written and synced before the first gets its name; then they get their names in the order
// of create(), one right after the other. An error takes the names back that were given, so that
// the old files stand again (except replaced ones on filesystems without links); a signal waits
// until the last has its name. A kill -9 between two names leaves the first files new and the
// others old, so files that are read alone come before those that speak of them.
class OutputSet {
 public:
  // A file to write; it stays where it is until this object goes.
  Expected<AtomicFile*> create(const std::string& path);
  Status add(const std::string& path, std::span<const std::byte> bytes);
  Status add(const std::string& path, const std::string& text) {
    return add(path, std::as_bytes(std::span(text)));
  }
  Status commit();

 private:
  std::list<AtomicFile> files_;
};

}  // namespace dualgemm::checkpoint
