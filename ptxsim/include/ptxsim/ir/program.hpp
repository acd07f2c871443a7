// One entry and the functions it may call, decoded: what the machine executes. Immutable after
// decode(); shared by all warps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ptxsim/error.hpp"
#include "ptxsim/ir/module.hpp"
#include "ptxsim/ir/traits.hpp"

namespace ptxsim {

struct Execution;  // machine/execution.hpp
struct Insn;

// What a handler says about the lanes it was called for.
enum class Outcome : uint8_t {
  kNext,   // done: the lanes go on with the next statement
  kJump,   // done: the handler has set the lanes' pc
  kBlock,  // not done: execute the same statement again after something has changed in the cluster
  kYield,  // done, but let other warps run first (a poll that failed)
  kExit,   // the lanes end
};
using Handler = Outcome (*)(Execution&, const Insn&);

// Where an operand's 32 lanes lie: in the warp's register file, or (top bit) in the program's
// constants.
struct Slot {
  static constexpr uint32_t kConstant = 0x80000000u;
  static constexpr uint32_t kAbsent = 0x7fffffffu;
  uint32_t at = kAbsent;
  bool is_constant() const { return (at & kConstant) != 0; }
  bool present() const { return at != kAbsent; }
  friend bool operator==(Slot, Slot) = default;
};

// Family-specific decoded modifiers and long operand lists.
struct Detail {
  virtual ~Detail() = default;
};

enum class Convergence : uint8_t {
  kNone,     // executes for whatever lanes are here
  kAligned,  // .aligned: waits until all lanes of the warp that have not exited are here
  kMembers,  // .sync with a member mask (slot `members`): waits until the named lanes are here
};

struct Insn {
  Handler execute = nullptr;
  Slot guard;  // predicate; absent: unconditional
  bool guard_negated = false;
  Convergence convergence = Convergence::kNone;
  bool may_touch_owned = false;  // wgmma.mma_async: checks its registers itself
  bool owns_registers = false;   // wgmma.mma_async and tcgen05.ld: theirs are in use until a wait
  bool touches_ownable = false;  // reads or writes a register that a statement of the entry owns
  bool writes_operand =
      false;           // writes a register that a wgmma.mma_async of the entry uses as D or A
  uint8_t family = 0;  // for families: free small fields
  uint8_t variant = 0;
  Slot members;            // Convergence::kMembers: 32-bit mask
  Slot slot[5];            // destination first, then sources, as the family defines
  uint64_t imm = 0;        // as the family defines: address offset, lookup table, modifier bits
  uint32_t target = 0;     // branch target
  uint32_t statement = 0;  // index into Program::statements: text and place
  uint32_t first_use =
      0;  // Program::uses[first_use .. +num_uses): registers that are read or written
  uint32_t num_uses = 0;
  const Detail* detail = nullptr;
};

struct RegisterUse {
  uint32_t at;     // offset in the register file
  uint32_t bytes;  // all lanes
  bool is_write;
};

struct RegisterRange {
  uint64_t at, bytes;  // in the register file; multiples of 4
};

// Registers the machine fills when a warp starts: special registers and addresses of symbols.
struct StartValue {
  enum class Kind : uint8_t {
    kSpecial,
    kSharedAddress,
    kParamAddress,
    kConstAddress,
    kGlobalAddress,
    kLocalAddress
  };
  Kind kind;
  Slot slot;      // in the register file, of `bytes` per lane
  uint8_t bytes;  // 2, 4 or 8
  SpecialKind special = SpecialKind::kTid;
  uint8_t axis = 0;
  uint32_t symbol = 0;  // index into Entry::variables
  int64_t offset = 0;
};

// One side of an argument or a result of a call: a register, a constant, or bytes of the frame.
struct CallPlace {
  Slot slot;            // absent: in the frame
  uint64_t offset = 0;  // in the frame
  uint64_t bytes = 0;
};

// The address of a variable in the frame, for statements that take it: in a register that each call
// fills.
struct FrameAddress {
  Slot slot;
  uint8_t bytes = 0;  // 4 or 8
  uint64_t offset = 0;
};

// A function that the entry may call: its part of the program.
struct CalledFunction {
  uint32_t function = 0;        // index into Module::functions
  uint32_t first = 0, end = 0;  // its statements
  std::vector<CallPlace> results, params;
  uint32_t first_register = 0, num_registers = 0;  // of entry->registers
  uint64_t first_register_byte = 0, register_bytes = 0;
  uint64_t frame_bytes = 0;  // .local variables and parameters
  uint32_t frame_alignment = 8;
  std::vector<uint32_t> frame_variables;  // of entry->variables
  std::vector<FrameAddress> frame_addresses;
  bool is_noreturn = false;
};

// What `mov` takes as the address of a function: nothing can be read there.
inline constexpr uint64_t kCodeWindow = 0x0000'7f40'0000'0000;
inline constexpr uint64_t kCodeBytes = 16;         // from one function to the next
inline uint64_t code_address(uint32_t function) {  // index into Module::functions
  return kCodeWindow + kCodeBytes * (uint64_t{function} + 1);
}

struct Program {
  std::shared_ptr<const Module> module;
  const Entry* entry = nullptr;         // with what its functions declare: of `module`, or `linked`
  std::shared_ptr<const Entry> linked;  // empty when the entry calls nothing
  uint32_t start = 0;                   // the entry's first statement, after those of functions
  std::vector<CalledFunction> functions;
  std::vector<int> called;  // by index into Module::functions: into `functions`; -1: not in here
  std::vector<Insn> insns;  // one for each statement, same indices
  std::vector<std::byte> constants;  // broadcast immediates: 32 lanes each
  std::vector<RegisterUse> uses;
  std::vector<StartValue> start_values;
  std::vector<std::shared_ptr<const Detail>> details;  // shared: a Program can be copied
  uint64_t register_bytes = 0;  // entry->register_bytes plus the start values
  // What holds poison when a warp starts. Everything else is written before it is read, and may
  // hold anything.
  std::vector<RegisterRange> poisoned;
  // Layout of shared memory: offset of each shared variable (index into entry->variables), dynamic
  // array last.
  std::vector<uint64_t> shared_offsets;  // parallel to entry->variables; 0 for others
  uint64_t static_shared_bytes = 0;
  bool uses_reserved_shared = false;  // of the first KiB what cooperative groups use
  std::vector<Traits> traits;         // by statement: what each is

  // The function that holds a statement; nullptr: the entry does.
  const CalledFunction* function_of(uint32_t statement) const;

  const Traits& traits_of(const Insn& insn) const { return traits[insn.statement]; }

  // The registers that `insn`, one of `insns`, reads or writes.
  std::span<const RegisterUse> uses_of(const Insn& insn) const {
    return {uses.data() + insn.first_use, insn.num_uses};
  }
};

inline constexpr uint64_t kSharedLayoutBegin =
    1024;  // the first KiB of shared memory belongs to the system

// The PTX line of a statement, and the source line of its .loc.
Place place_of(const Program& program, uint32_t statement);

}  // namespace ptxsim
