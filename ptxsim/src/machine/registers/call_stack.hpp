// Calls of functions: what each lane comes back to, and where its frame lies.
//
// Registers: each function has its own in the warp's file (ir/link.hpp), so that operands stay
// where decode() put them. A lane that calls a function which is still active further out puts that
// activation's registers aside, and gets them back on return. .local variables and parameters: a
// frame above the caller's in the lane's local memory, so that addresses of outer frames stay
// valid.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ptxsim/ir/program.hpp"

namespace ptxsim {

class Machine;
struct Execution;
struct Warp;

inline constexpr size_t kMaxCallDepth = 1024;          // calls of a lane that have not returned
inline constexpr uint64_t kMaxLocalBytes = 512 << 10;  // of a thread (CUDA: compute capabilities)

// The caller's side of a call.
struct CallSite : Detail {
  std::vector<CallPlace> arguments, results;  // a result of 0 bytes is not wanted
};

struct CallFrame {
  const CalledFunction* function;
  const CallSite* site;
  uint32_t call;  // the statement
  uint64_t base;  // of the frame, in the lane's local memory
  uint64_t caller_top;
  bool has_outer;                // the function was active already
  std::vector<std::byte> outer;  // its registers then, of this lane
};

struct CallStack {
  std::array<std::vector<CallFrame>, kWarpSize> frames;
  std::vector<uint32_t> active;  // by function of the program: lanes
  std::vector<std::byte> values;
};

// The lanes of the mask go into the function: arguments, frame, registers. Their program counter is
// the caller's affair. A Fault when a lane is too deep, or its local memory is used up.
void enter_function(Execution& x, uint32_t function, const CallSite& site);

// They come back, with results. Sets their program counters; true when all of them are `where`.
bool leave_function(Execution& x, uint32_t function, uint32_t& where);

// Bytes of one value of a call on the caller's side.
void read_argument(const Execution& x, const CallPlace& place, int lane, std::byte* to);
void write_result(Execution& x, const CallPlace& place, int lane, const std::byte* from);

// Local memory of a lane: its frames from the outermost on, then what alloca has added.
uint64_t frame_base(const Warp& warp, int lane);
// Moves the end; a Fault above kMaxLocalBytes.
void set_local_top(const Execution& x, int lane, uint64_t top);

// "; called at kernel.ptx:30, kernel.ptx:12", the innermost first; empty in the entry.
std::string callers_text(const Machine& machine, const Warp& warp, int lane);

}  // namespace ptxsim
