// Grids that overlap (programmatic dependent launch). They are interpreted one after the other, so
// that results are those of a run without overlap; what each did in global memory is kept, and the
// sanitizer judges the next one by it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ptxsim {

// What a grid that has ended did in global memory.
struct GridTrail {
  struct Range {
    uint64_t begin = 0, end = 0;  // addresses
    uint32_t access = 0;          // index of `accesses`: one of those that touched it
    bool is_strong = false;       // relaxed, volatile or atomic, in the scope of the GPU
  };
  using Ranges = std::vector<Range>;  // ascending, disjoint

  std::string kernel;
  std::vector<std::string>
      accesses;  // "'st.global.u32 [%rd1], %r1;' at k.ptx:9, by CTA (0,0,0), warp 0, lane 3"
  Ranges writes;
  Ranges reads;                    // of what was not written after that
  bool waits = false;              // a thread executed griddepcontrol.wait
  bool lets_next_start = false;    // a thread executed griddepcontrol.launch_dependents
  bool waits_before_that = false;  // in some CTA, before that or before the CTA's end
};
// The first of the ranges that overlaps these addresses; nullptr: none.
const GridTrail::Range* find_overlap(const GridTrail::Ranges& ranges, uint64_t begin, uint64_t end);

// A grid that may still run when another one starts.
struct EarlierGrid {
  std::shared_ptr<const GridTrail> trail;
  bool is_waited_for = true;  // by griddepcontrol.wait; false: it may run even after that
};
using EarlierGrids = std::vector<EarlierGrid>;

// The launches of a stream, each of which may overlap the one before it.
class GridChain {
 public:
  // Those that may still run when a programmatic dependent launch comes next, the newest first.
  EarlierGrids beside_next() const;
  // `beside`: what may have run when it started.
  void add(std::shared_ptr<const GridTrail> trail, EarlierGrids beside);
  void clear();  // all of it is over

 private:
  std::shared_ptr<const GridTrail> last_;
  EarlierGrids beside_last_;
};

}  // namespace ptxsim
