// A warp: 32 lanes with a program counter each and a register file as a structure of arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "machine/registers/register_files.hpp"
#include "ptxsim/ir/module.hpp"
#include "ptxsim/machine/observer.hpp"

namespace ptxsim {

struct CallStack;  // machine/call_stack.hpp
struct Cta;
struct Insn;
struct UndefinedValues;  // machine/undefined.hpp

// What a blocked group of lanes waits for: for the deadlock report.
struct WaitInfo {
  enum class Kind : uint8_t {
    kNone,
    kMbarrier,
    kNamedBarrier,
    kClusterBarrier,
    kAsync,
    kConverge,
    kOther
  };
  Kind kind = Kind::kNone;
  uint32_t cta_rank = 0;
  uint32_t where = 0;  // offset of the mbarrier, or number of the barrier
  uint32_t parity = 0;
  const char* what = "";
  uint64_t phase = 0;     // kMbarrier: the phase whose end the lane has asked for
  bool presumed = false;  // kMbarrier: it may mean a later phase of the same parity
  BarrierOrder order = BarrierOrder::kAcquireRelease;  // kMbarrier: of the wait
};

// `ticket` of lanes that are blocked in mbarrier.try_wait. The machine sets kTicketTimeout when
// nothing else can go on: the statement is executed again and returns false, as the hardware's time
// limit makes it do. kTicketReleased: machine/near_miss.hpp.
inline constexpr uint64_t kTicketTimeout = 1;
inline constexpr uint64_t kTicketWaiting = 2;  // the lane has been suspended before
inline constexpr uint64_t kTicketReleased = 3;

struct Warp {
  Cta* cta = nullptr;
  uint32_t index = 0;    // in the CTA
  uint32_t live = 0;     // lanes that have not exited
  uint32_t blocked = 0;  // lanes whose statement is to be tried again
  uint32_t parked = 0;   // lanes that wait at a converging statement for others of the warp
  std::array<uint32_t, kWarpSize> pc{};
  std::array<uint64_t, kWarpSize> blocked_at{};  // Cluster::version when the lane blocked
  std::array<uint64_t, kWarpSize>
      ticket{};           // a handler's own note about a statement that blocked; 0 when it starts
  uint32_t ticketed = 0;  // lanes whose ticket is to be zeroed when their statement completes
  uint32_t separated =
      0;  // lanes that a branch separated, and nothing that synchronises the warp joined since
  uint32_t separated_by = 0;  // the statement of the branch
  uint32_t yielded = 0;       // lanes that polled in vain: others of the warp go first
  std::array<uint64_t, kWarpSize> timed_out_at{};  // Cluster::version of the last time limit
  std::array<WaitInfo, kWarpSize> wait{};
  RegisterFile registers;        // Program::register_bytes
  std::vector<std::byte> local;  // of each lane: local_stride bytes, of which local_top are in use
  uint64_t local_stride = 0;
  std::array<uint64_t, kWarpSize> local_top{};
  std::shared_ptr<CallStack> calls;            // made by the first call
  std::shared_ptr<UndefinedValues> undefined;  // made by the first read of unwritten bytes
  uint32_t carry = 0;  // CC.CF of each lane (add.cc and the other extended-precision instructions)
  uint64_t executed = 0;

  // Registers that an unfinished asynchronous operation owns (R8): ranges of the register file.
  struct OwnedRange {
    uint32_t at, bytes;
    uint64_t owner;      // the operation that added it removes it by this number
    bool reads_allowed;  // an operand that is only read (wgmma's A)
    int statement;
  };
  std::vector<OwnedRange> owned;
  std::vector<uint32_t> unfenced;  // registers of wgmma operands written since the last wgmma.fence
  struct PutOff {                  // a mov that waits for its source (machine/owned.hpp)
    const Insn* insn;
    uint32_t mask;
    uint64_t owner;
  };
  std::vector<PutOff> put_off;
  // Loads whose result the hardware's scoreboard delivers when it is read before the wait.
  struct Unfinished {
    uint64_t owner;
    bool done = false;
    std::function<void()> finish;
  };
  std::vector<std::shared_ptr<Unfinished>> unfinished;

  std::byte* local_at(int lane, uint64_t offset) {
    return local.data() + local_stride * static_cast<uint64_t>(lane) + offset;
  }
  std::byte* file() { return reinterpret_cast<std::byte*>(registers.get()); }
};

}  // namespace ptxsim
