// The opaque 64-bit state that mbarrier.arrive returns, and what each thread has seen of each
// barrier's phases.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "machine/cta.hpp"
#include "machine/memory/mbarrier.hpp"

namespace ptxsim {

// Bits 0-19 pending arrivals before the arrival, 20-51 phase, 52-63 a mark.
inline constexpr uint64_t kArriveStateMark = 0x5b7;
inline constexpr uint64_t kArriveStatePhases = uint64_t{1} << 32;

inline uint64_t arrive_state(const Mbarrier& barrier) {
  return kArriveStateMark << 52 | (barrier.phase % kArriveStatePhases) << 20 |
         static_cast<uint64_t>(barrier.pending);
}
inline bool is_arrive_state(uint64_t state) { return state >> 52 == kArriveStateMark; }
inline uint64_t phase_of_state(uint64_t state) { return state >> 20 & (kArriveStatePhases - 1); }
inline uint32_t pending_of_state(uint64_t state) { return state & 0xfffff; }

// For each barrier (by offset) and thread of the CTA.
struct WaitHistory : FamilyState {
  static constexpr const char* kFamilyKey = "mbarrier waits";
  struct Seen {
    bool any = false;     // the thread has waited on this barrier before
    bool skips = false;   // it does not wait for every phase
    uint64_t phases = 0;  // so many phases it knows to be complete
  };
  std::unordered_map<uint32_t, std::vector<Seen>> seen;
  Seen& at(uint32_t offset, uint32_t thread, uint32_t threads) {
    std::vector<Seen>& list = seen[offset];
    if (list.empty()) list.resize(threads);
    return list[thread];
  }
};

}  // namespace ptxsim
