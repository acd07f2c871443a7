// What `ptxsim exec` tells the library inside of the program: one environment variable of key=value
// lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxsim/machine/launch.hpp"

namespace ptxsim::cuda {

inline constexpr const char* kSettingsVariable = "PTXSIM_EXEC";

struct Settings {
  std::string device = "b200";  // key of a DeviceModel
  std::string report;           // file that records are appended to; empty: they are not kept
  std::string ptx_folder;       // where the PTX of every module is written to; empty: nowhere
  std::vector<std::string>
      substitutes;            // files of PTX for kernels that a module has as machine code only
  bool time = false;          // estimate every launch with the clock of `device`
  std::string gpu_file;       // parameters of the clock in place of `device`'s; empty: those
  std::string sass = "auto";  // where the clock has numbers of instructions from: LaunchClock::of
  bool once = false;          // a launch that has been run with the same arguments is counted only
  // No more clusters than these are resident at once, as where others have SMs; 0: none can be
  // launched.
  uint32_t max_clusters = UINT32_MAX;
  Options options;
};

std::string to_text(const Settings& settings);
// Keys that are not known are passed over; a value that is none leaves the default.
Settings settings_of(std::string_view text);

}  // namespace ptxsim::cuda
