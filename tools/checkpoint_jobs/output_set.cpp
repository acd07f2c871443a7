#include "tools/checkpoint_jobs/output_set.hpp"

#include <iterator>

namespace dualgemm::checkpoint {

Expected<AtomicFile*> OutputSet::create(const std::string& path) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.status();
  return &files_.emplace_back(*std::move(file));
}

Status OutputSet::add(const std::string& path, std::span<const std::byte> bytes) {
  const Expected<AtomicFile*> file = create(path);
  return file ? (*file)->write(bytes) : file.status();
}

Status OutputSet::commit() {
  for (AtomicFile& file : files_) DUALGEMM_TRY(file.sync());
  {
    const Publishing publishing;
    for (auto file = files_.begin(); file != files_.end(); ++file) {
      const Status status = file->publish();
      if (status.ok()) continue;
      for (auto given = std::make_reverse_iterator(file); given != files_.rend(); ++given)
        given->take_back();
      files_.clear();
      return status;
    }
  }
  for (AtomicFile& file : files_) DUALGEMM_TRY(file.settle());
  return {};
}

}  // namespace dualgemm::checkpoint
