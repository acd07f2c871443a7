#include "fake_cuda/functions.hpp"

#include <algorithm>

namespace ptxsim::cuda {
namespace {

constexpr int kDefaultDynamicSharedBytes = 48 * 1024;
// ptxas chooses the registers, and nothing of it is known here: as many as a thread may have.
constexpr int kMostRegisters = 255;

uint64_t static_shared_bytes(Kernel& kernel) {
  const auto program = LoadedModule::program_of(kernel);
  return program == nullptr ? 0 : program->static_shared_bytes;
}

uint64_t local_bytes(Kernel& kernel) {
  const auto program = LoadedModule::program_of(kernel);
  return program == nullptr ? 0 : program->entry->local_bytes;
}

int max_threads(const Entry& entry) {
  const uint64_t bound = uint64_t{entry.maxntid[0]} * entry.maxntid[1] * entry.maxntid[2];
  const uint64_t exact = uint64_t{entry.reqntid[0]} * entry.reqntid[1] * entry.reqntid[2];
  return static_cast<int>(std::min<uint64_t>(exact != 0 ? exact : bound != 0 ? bound : 1024, 1024));
}

}  // namespace

Status function_attribute(const Session& session, Kernel& kernel, int attribute, int& value) {
  const Entry& entry = *kernel.entry;
  const int statically = static_cast<int>(static_shared_bytes(kernel));
  switch (attribute) {
    case kMaxThreadsPerBlock:
      value = max_threads(entry);
      return kSuccess;
    case kSharedBytes:
      value = statically;
      return kSuccess;
    case kLocalBytes:
      value = static_cast<int>(local_bytes(kernel));
      return kSuccess;
    case kNumRegisters:
      value = std::min(kMostRegisters, 65536 / max_threads(entry));
      return kSuccess;
    case kPtxVersion:
    case kBinaryVersion:
      value = static_cast<int>(session.device.architecture());
      return kSuccess;
    case kMaxDynamicSharedBytes:
      value = kernel.max_dynamic_shared_bytes != 0
                  ? static_cast<int>(kernel.max_dynamic_shared_bytes)
                  : kDefaultDynamicSharedBytes - statically;
      return kSuccess;
    case kPreferredSharedCarveout:
      value = -1;
      return kSuccess;
    case kClusterMustBeSet:
      value = entry.explicit_cluster || entry.reqnctapercluster[0] != 0 ? 1 : 0;
      return kSuccess;
    case kRequiredClusterWidth:
    case kRequiredClusterHeight:
    case kRequiredClusterDepth:
      value = static_cast<int>(
          entry.reqnctapercluster[static_cast<size_t>(attribute - kRequiredClusterWidth)]);
      return kSuccess;
    case kNonPortableClusterSize:
      value = kernel.non_portable_cluster_size ? 1 : 0;
      return kSuccess;
    case kConstBytes:
    case kCacheModeCa:
    case kClusterScheduling:
      value = 0;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

Status set_function_attribute(const Session& session, Kernel& kernel, int attribute, int value) {
  switch (attribute) {
    case kMaxDynamicSharedBytes:
      if (value < 0 || static_shared_bytes(kernel) + static_cast<uint64_t>(value) >
                           session.device.shared_bytes_per_block())
        return kInvalidValue;
      kernel.max_dynamic_shared_bytes = static_cast<uint32_t>(value);
      return kSuccess;
    case kNonPortableClusterSize:
      kernel.non_portable_cluster_size = value != 0;
      return kSuccess;
    case kPreferredSharedCarveout:  // hints
    case kClusterScheduling:
    case kClusterMustBeSet:
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

uint32_t resident_clusters(const Session& session, const Kernel& kernel,
                           const LaunchRequest& request) {
  const uint64_t ctas =
      uint64_t{session.blocks_per_sm(kernel, static_cast<uint32_t>(volume(request.block)),
                                     request.dynamic_shared_bytes)} *
      session.device.sms;
  const uint64_t clusters = ctas / std::max<uint64_t>(volume(request.cluster), 1);
  return static_cast<uint32_t>(std::min<uint64_t>(clusters, session.settings.max_clusters));
}

}  // namespace ptxsim::cuda
