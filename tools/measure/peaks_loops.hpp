// The assembly loops behind peaks.hpp. Each runs `iterations` times a body of known work on one
// thread.
#pragma once

#include <cstdint>
#include <span>

#include "tools/measure/peaks.hpp"

namespace dualgemm::measure {

struct ArithmeticLoop {
  const char* name;
  const char* what;
  double Peaks::*field;
  double ops_per_iteration;
  void (*run)(int64_t iterations);
};

// Reads [data, data + bytes) once. Precondition: data aligned to 64 bytes, bytes a multiple of
// kReadGranule.
struct ReadLoop {
  const char* name;
  const char* what;
  void (*run)(const char* data, int64_t bytes);
};
inline constexpr int64_t kReadGranule = 4096;

// What this processor and operating system can run; empty on machines other than x86-64 and 64-bit
// Arm.
std::span<const ArithmeticLoop> supported_arithmetic_loops();
std::span<const ReadLoop> supported_read_loops();

}  // namespace dualgemm::measure
