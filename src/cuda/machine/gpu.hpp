// One description of each GPU for which a model of time ranks kernels: numbers with their kind and
// source, in one unit each: microseconds, bytes a microsecond, clocks a microsecond. The file of
// ptxsim's clock and the command's table say the same (tests/unit/cuda/machine_test.cpp). Host
// only.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dualgemm::cuda::machine {

enum class Kind { kDataSheet, kPublished, kMeasured, kDerived, kFitted, kAssumed };

struct Number {
  double value;
  Kind kind;
  const char* source;
};

struct Gpu {
  const char* name;  // as `dualgemm plan --device` takes it
  int compute_capability;
  Number sms;
  Number l2_bytes, memory_bytes;
  Number clocks_per_us;           // of an SM under load
  Number sheet_bytes_per_us;      // of memory, as the data sheet has it: none reads faster
  Number hbm_bytes_per_us;        // delivered, all SMs together
  Number l2_bytes_per_us;         // likewise
  Number ingest_bytes_per_us;     // delivered to one SM
  Number shared_bytes_per_clock;  // that an SM's tensor core reads operands at
  Number half_macs_per_us;        // multiplications of 16-bit operands that are kept up, all SMs
};

// What no launch is below that reads so many bytes, and whose products take so long at the clock of
// the data sheet: a GPU may run a tenth faster than that.
inline double least_us(const Gpu& gpu, double bytes, double macs_us) {
  return std::max(bytes / gpu.sheet_bytes_per_us.value, 0.9 * macs_us);
}

}  // namespace dualgemm::cuda::machine
