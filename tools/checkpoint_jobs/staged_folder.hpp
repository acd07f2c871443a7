// A folder of files that appears complete or not at all.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/unfinished.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// Files are written to a folder ".NAME.dualgemm-PID-N.tmp" beside the target; commit() syncs it and
// renames it to the target:
//   - no target: one rename;
//   - an empty target: one rename, which replaces it;
//   - a target that holds something: what stays is linked into the new folder, which then changes
//     places with the old one, in one step.
// Where the target cannot be replaced (a mount point, the working directory, a parent without
// permission, a filesystem that exchanges nothing), the files are staged inside it and renamed one
// by one in the order of path(): a kill between two of them leaves the first ones.
// Destruction without commit(), and a handler that calls remove_unfinished(), leave nothing. What
// kill -9 or a loss of power left holds no lock: the next create() for this target removes it.
class StagedFolder {
 public:
  // Error where the parent is not there or nothing can be written.
  static Expected<StagedFolder> create(const std::string& target);
  ~StagedFolder();
  StagedFolder(StagedFolder&& other) noexcept;
  StagedFolder& operator=(StagedFolder&&) = delete;

  // Folders that interrupted runs left for the same target; removed.
  const std::vector<std::string>& swept() const noexcept { return swept_; }

  // Where to write the file that will be `name` in the target.
  std::string path(const std::string& name);

  // `obsolete`: names in the target that go, in this order; others that are not written anew stay.
  // Once.
  Status commit(const std::vector<std::string>& obsolete = {});

 private:
  StagedFolder() = default;
  Status make_beside_or_inside();
  Status make(const std::string& path);
  Status adopt_what_stays(const std::vector<std::string>& obsolete) const;
  Status rename_to_target(const std::vector<std::string>& obsolete);
  Status move_inside(const std::vector<std::string>& obsolete);
  void sweep(const std::string& folder);
  void release() noexcept;

  std::string target_, staging_;
  bool target_exists_ = false, inside_ = false;
  int lock_ = -1;  // the staging folder, open and locked
  std::vector<std::string> names_, swept_;
  std::vector<Unfinished> unfinished_;
};

}  // namespace dualgemm::checkpoint
