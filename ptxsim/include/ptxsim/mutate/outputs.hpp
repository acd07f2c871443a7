// What a run left in global memory, for mutants of cases that do not say what is right.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ptxsim {

struct Outputs {
  struct Buffer {
    std::string name;
    std::vector<std::byte> data;
    std::vector<bool> written;  // by byte; empty: all of it was before the run
    bool changed = false;       // the kernel wrote to it; what it wrote may be what was there
    friend bool operator==(const Buffer&, const Buffer&) = default;
  };
  std::vector<Buffer> buffers;  // all of them: a mutant may write to one that the kernel only reads
  friend bool operator==(const Outputs&, const Outputs&) = default;
};

// The first difference in one line, such as "out: byte 12 is 0x00; the unchanged kernel leaves
// 0x3f"; empty when there is none. Both have the same buffers.
std::string difference(const Outputs& unchanged, const Outputs& mutant);

}  // namespace ptxsim
