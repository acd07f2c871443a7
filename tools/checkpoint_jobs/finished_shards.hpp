// Shards of a conversion that survive its interruption, so that the next run goes on.
#pragma once

#include <string>

#include "checkpoint/tensor.hpp"
#include "dualgemm/status.hpp"
#include "tools/checkpoint_jobs/quantize_checkpoint.hpp"

namespace dualgemm::checkpoint {

// A folder ".NAME.dualgemm-resume" beside the target: job.json says of which inputs and options it
// is, SHARD is complete where SHARD.json stands beside it, which has the report of it. Both are
// written whole and synced, SHARD.json last: a kill at any moment leaves what was finished.
class FinishedShards {
 public:
  // `job`: a text that is the same for the same outputs. kInvalidArgument: the folder is of another
  // job, or a run that goes on holds it.
  static Expected<FinishedShards> open(const std::string& target, const std::string& job);
  ~FinishedShards();
  FinishedShards(FinishedShards&& other) noexcept;
  FinishedShards& operator=(FinishedShards&&) = delete;

  // Is the shard there? Then its report is added to `report`.
  Expected<bool> find(const std::string& shard, QuantizeCheckpointReport& report) const;
  // What quantize_chosen() made of a shard, and said of it.
  Status add(const std::string& shard, const TensorFile& tensors,
             const QuantizeCheckpointReport& report) const;
  // Not under its own name: one shard alone would be refused.
  std::string path(const std::string& shard) const;
  // Another name for the file, or a copy where there are no links.
  Status put(const std::string& shard, const std::string& to) const;

  // Removes the folder: the conversion is complete.
  void remove() noexcept;
  const std::string& folder() const noexcept { return folder_; }

 private:
  FinishedShards() = default;

  std::string folder_;
  int lock_ = -1;
};

// What `job` must say of the inputs: each file's path, size and time of its last change.
std::string identity_of(const TensorFile& in);

}  // namespace dualgemm::checkpoint
