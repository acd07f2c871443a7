// Reads of a CTA's shared memory that its shadow does not know yet.
//
// Where a barrier of the whole CTA empties the shadow (CtaShadow::generation), a read matters only
// to writes of the same bytes before the next one, and tiles are mostly written in one phase and
// read in another. So a read of bytes that no thread has written since the last barrier is noted
// here, a warp's at once, and enters the shadow when a granule of it is looked at.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "check/shared_granule.hpp"
#include "ptxsim/machine/observer.hpp"

namespace ptxsim::check {

struct LoggedRead {
  ShadowEntry entry;  // all of its lanes, and no bytes: `bytes` at the offset of each
  uint32_t bytes;
  std::array<uint32_t, kWarpSize> offsets;
};

// A bit for each granule.
class GranuleSet {
 public:
  void reset(size_t granules) { words_.assign((granules + 63) / 64, 0); }
  void clear() { std::ranges::fill(words_, 0); }
  void add(uint32_t granule) { words_[granule / 64] |= uint64_t{1} << granule % 64; }
  bool has(uint32_t granule) const { return (words_[granule / 64] >> granule % 64 & 1) != 0; }
  // Those from `first` to `last`.
  void add(uint32_t first, uint32_t last) {
    for_words(first, last, [](uint64_t& word, uint64_t mask) { word |= mask; });
  }
  bool has_any(uint32_t first, uint32_t last) {
    uint64_t any = 0;
    for_words(first, last, [&](uint64_t& word, uint64_t mask) { any |= word & mask; });
    return any != 0;
  }

 private:
  template <class F>
  void for_words(uint32_t first, uint32_t last, F&& f) {  // f(word, mask)
    const uint64_t from = ~uint64_t{0} << first % 64, to = ~uint64_t{0} >> (63 - last % 64);
    if (first / 64 == last / 64) return f(words_[first / 64], from & to);
    f(words_[first / 64], from);
    for (uint32_t i = first / 64 + 1; i < last / 64; ++i) f(words_[i], ~uint64_t{0});
    f(words_[last / 64], to);
  }
  std::vector<uint64_t> words_;
};

class ReadLog {
 public:
  // Forgets everything when the shadow's generation is another one, or this the first call.
  void begin(uint32_t generation, size_t granules) {
    if (generation == generation_) return;
    generation_ = generation;
    reads_.clear();
    read_.reset(granules);
    written_.reset(granules);
  }
  // Takes a read of `bytes` by each of the entry's lanes. False: some of them may have been written
  // since the generation began, or there are too many reads.
  bool take(const ShadowEntry& entry, const SharedOffsets& offsets, uint32_t bytes);
  void note_write(uint32_t granule) { written_.add(granule); }
  bool concerns(uint32_t granule) const { return !reads_.empty() && read_.has(granule); }
  // Calls f(LoggedRead) for all of them, in order, and forgets them.
  template <class F>
  void hand_over(F&& f) {
    for (const LoggedRead& read : reads_) f(read);
    reads_.clear();
    read_.clear();
  }

 private:
  uint32_t generation_ = kNobody;
  std::vector<LoggedRead> reads_;
  GranuleSet read_, written_;
};

}  // namespace ptxsim::check
