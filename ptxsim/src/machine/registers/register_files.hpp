// Memory for the register files of warps. Those of warps that have ended are kept for the next
// ones: a file has up to 1.5 MB, and memory that is new to the process costs a page fault and a
// cleared page for each 4 KiB, a quarter of the time of a launch of few instructions.
#pragma once

#include <cstddef>
#include <memory>

namespace ptxsim {

struct alignas(64) RegisterLine {
  std::byte bytes[64];
};

// Keeps the memory for the thread's next warps, up to a bound.
struct KeepRegisterFile {
  size_t lines = 0;
  void operator()(RegisterLine* file) const;
};
using RegisterFile = std::unique_ptr<RegisterLine[], KeepRegisterFile>;

// With whatever was in it before.
RegisterFile take_register_file(size_t lines);

}  // namespace ptxsim
