// Clock, power and the reasons for a lower clock, as the driver reports them. Its management
// library is looked for at run time; without it nothing is known and nothing fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dualgemm::bench {

struct GpuState {
  bool known = false;
  unsigned sm_clock_mhz = 0;
  unsigned temperature = 0;  // degrees Celsius
  double power_watts = 0.0;
  uint64_t reasons = 0;  // why the clock is not higher: a mask of NVML's

  std::vector<std::string> reason_names() const;
};

class Nvml {
 public:
  // Opens NVML for the current CUDA device.
  Nvml();

  GpuState read() const;
  const std::string& driver() const noexcept { return driver_; }  // empty: unknown
  unsigned max_sm_clock_mhz() const noexcept { return max_clock_; }
  double power_limit_watts() const noexcept { return power_limit_; }

 private:
  void* library_ = nullptr;  // stays loaded
  void* device_ = nullptr;
  std::string driver_;
  unsigned max_clock_ = 0;
  double power_limit_ = 0.0;
};

}  // namespace dualgemm::bench
