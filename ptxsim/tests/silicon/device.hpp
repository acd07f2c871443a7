// The GPU's side of the comparison: runs a case's PTX through the driver on real buffers. The
// driver is reached through the runtime's entry points: no link to libcuda.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ptxsim/case/case.hpp"

namespace silicon {

struct DeviceInfo {
  std::string name;
  int major = 0, minor = 0, driver = 0;
};
ptxsim::Result<DeviceInfo> open_device();

// Contents of the case's buffers after the launch, in their order; `address` receives where each
// lay. Every buffer has 4 KiB around it on both sides; a byte that changed there is an error.
struct DeviceRun {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<uint64_t> addresses;
};
ptxsim::Result<DeviceRun> run_on_device(const std::string& ptx, const std::string& case_json,
                                        const std::string& folder);

// us from one launch to the next in a graph of launches in a row, the median of several replays.
// `cold`: each launch finds buffers that others have driven out of L2; else the same ones again.
ptxsim::Result<double> time_on_device(const std::string& ptx, const std::string& case_json,
                                      const std::string& folder, bool cold);

}  // namespace silicon
