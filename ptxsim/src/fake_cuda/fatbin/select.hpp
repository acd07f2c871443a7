// Which PTX of a fat binary runs on a GPU, as the driver picks it (CUDA C++ Programming Guide,
// "Binary Compatibility" and "PTX Compatibility"; PTX ISA 9.0, ".target": sm_100a runs on that GPU
// alone, sm_100f on its family, sm_100 on every later one).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fake_cuda/fatbin/container.hpp"

namespace ptxsim::cuda {

struct PtxTarget {
  uint32_t architecture = 0;  // 100
  char suffix = 0;            // 'a', 'f' or 0
};

// What the `.target` directive says; nothing where there is none.
std::optional<PtxTarget> target_of(std::string_view ptx);
bool runs_on(const PtxTarget& target, uint32_t device_architecture);

struct Selection {
  std::string ptx;       // empty: nothing fits
  std::string contents;  // "PTX of sm_90a, machine code of sm_100", for messages
};
// An exact target is taken before its family's, and that before the highest of the others. An
// Error: an entry is broken.
Result<Selection> select_ptx(std::span<const FatbinEntry> entries, uint32_t device_architecture);

}  // namespace ptxsim::cuda
