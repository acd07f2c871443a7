// What an SM's L1 holds of global memory: lines of 128 bytes, sectors of 32, the least recently
// used line goes.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

namespace ptxsim::timing {

inline constexpr uint64_t kSectorBytes = 32, kLineBytes = 128;

class L1Cache {
 public:
  explicit L1Cache(uint64_t bytes) : lines_(bytes / kLineBytes) {}

  // Whether the sector is there. Afterwards it is.
  bool read(uint64_t sector);

 private:
  struct Line {
    std::list<uint64_t>::iterator place;
    uint32_t sectors = 0;
  };
  uint64_t lines_;
  std::list<uint64_t> order_;  // the line used last is the first
  std::unordered_map<uint64_t, Line> held_;
};

}  // namespace ptxsim::timing
