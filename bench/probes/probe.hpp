// Questions to a GPU whose answers the design of a kernel stands on: how long a launch takes that
// does nothing, how soon the first byte comes, what memory and the tensor pipe deliver.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::bench {

struct Reading {
  std::string name;
  double value;
  const char* unit;
};

struct ProbeSettings {
  DeviceCaps caps;     // of the current GPU
  bool brief = false;  // few CTAs and rounds: whether it runs at all; the numbers say nothing
};

// A probe for GPUs of compute capability `major`.x alone; `what` says what exists there.
inline Status check_capability(const ProbeSettings& settings, int major, std::string what) {
  const int capability = settings.caps.compute_capability;
  if (capability / 10 == major) return {};
  return Status::unsupported(
      "compute capability", std::to_string(capability / 10) + "." + std::to_string(capability % 10),
      std::move(what));
}

// Bytes of shared memory that one CTA can have: what an SM has, less what each CTA takes besides.
inline int64_t smem_of_cta(const DeviceCaps& caps) { return caps.l1d_bytes - 1024; }

struct Probe {
  const char* name;
  const char* question;
  // kUnsupported: not on this GPU.
  Expected<std::vector<Reading>> (*run)(const ProbeSettings&);
};

// One for each file of that name.
Expected<std::vector<Reading>> probe_launch_period(const ProbeSettings& settings);
Expected<std::vector<Reading>> probe_overlap(const ProbeSettings& settings);
Expected<std::vector<Reading>> probe_clocks(const ProbeSettings& settings);
Expected<std::vector<Reading>> probe_first_bytes(const ProbeSettings& settings);
Expected<std::vector<Reading>> probe_copy_rates(const ProbeSettings& settings);
Expected<std::vector<Reading>> probe_mma_issue(const ProbeSettings& settings);
Expected<std::vector<Reading>> probe_mma_nvf4(const ProbeSettings& settings);
Expected<std::vector<Reading>> probe_tensor_pipe(const ProbeSettings& settings);

}  // namespace dualgemm::bench
