// What an instruction is. It is said once, in the instruction's row of the decoders' tables
// (insn/registry.hpp; the presets that rows are made of: insn/traits.hpp), and stands beside the
// decoded statement (Program::traits). The machine, the sanitizer, the clock, the drafts of cases
// and the mutants ask it; none of them compares a mnemonic.
#pragma once

#include <cstdint>

namespace ptxsim {

// Bits of Traits::set. Behind each, in brackets: what asks for it.
enum class Trait : uint32_t {
  kNone = 0,

  // What it does. Each instruction has at least one of these; a row without one does not compile.
  kComputes = 1u << 0,      // registers of registers alone: undefined bits are followed through it
                            // [machine/undefined]
  kQueries = 1u << 1,       // registers of an address, an object or the state of the warp, of which
                            // nothing may be undefined
  kReads = 1u << 2,         // memory into registers, when it executes [check/signals,
                            // memory_order; case/parameter_uses]
  kWrites = 1u << 3,        // registers into memory [check/signals]
  kUpdates = 1u << 4,       // memory combined with registers, in one step: atom, red
                            // [check/guesses, signals; case/parameter_uses]
  kCopies = 1u << 5,        // memory into memory [case/parameter_uses]
  kImage = 1u << 6,         // a texture or a surface is read, written or updated
  kHints = 1u << 7,         // how memory is cached: no byte changes
  kMultiplies = 1u << 8,    // matrices, on the tensor core
  kTensorMemory = 1u << 9,  // tensor memory: allocation, loads, stores, copies
  kBarrier = 1u << 10,      // threads, or operations, arrive or wait
  kFence = 1u << 11,        // orders what its thread does before and after
  kGroup = 1u << 12,        // commits asynchronous operations, or waits for them
  kControls = 1u << 13,     // where, whether and with what the thread goes on

  // How it does it.
  kAsync = 1u << 14,         // goes on after the statement [check/guesses]
  kGenericProxy = 1u << 15,  // an asynchronous operation of the generic proxy; others belong to the
                             // async proxy [check/operations]
  kBulk = 1u << 16,          // belongs to bulk copies [check/loads]
  kTensorMap = 1u << 17,     // an address is that of a tensor map [case/parameter_uses]
  kStrong = 1u << 18,        // a strong read or write: others may learn something by it
                             // [check/signals, load_uses]
  kNonCoherent = 1u << 19,   // reads what must not change [check/global_findings]
  kFollowed = 1u << 20,      // a load whose results the sanitizer follows to their use
                             // [check/loads, load_uses]
  kPassesOn = 1u << 21,      // hands a result on without using it: mov [machine/owned, check/loads,
                             // load_uses, unused_loads, guesses]
  kSeesUndefined = 1u << 22,  // its handler looks at undefined bits itself [machine/undefined]
  kWaitsForLoads = 1u << 23,  // holds the thread until its loads are over [check/load_uses]
  kScFence = 1u << 24,        // sequentially consistent [check/sc_fences]
  kArrives = 1u << 25,        // at an mbarrier, in program order [check/loads]
  kEndsMbarrier = 1u << 26,   // mbarrier.inval [check/barrier_memory]
  kPrefetches = 1u << 27,     // neither reads nor writes through its address [case/parameter_uses]
  kToGlobal = 1u << 28,       // its operand is an address of global memory [case/parameter_uses]
  kJumps = 1u << 29,          // unguarded, it does not fall through [ir/control_flow]
  kEnds = 1u << 30,           // the same, and leads nowhere: ret, exit [ir/control_flow,
                              // check/load_uses]
  kCalls = 1u << 31,          // an operand is the function that is called [ir/link]
};
constexpr Trait operator|(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr Trait operator&(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<uint32_t>(a) & static_cast<uint32_t>(b));
}
inline constexpr Trait kAllDeeds =  // one of which each instruction has
    Trait::kComputes | Trait::kQueries | Trait::kReads | Trait::kWrites | Trait::kUpdates |
    Trait::kCopies | Trait::kImage | Trait::kHints | Trait::kMultiplies | Trait::kTensorMemory |
    Trait::kBarrier | Trait::kFence | Trait::kGroup | Trait::kControls;

// What its first operand comes to hold, as far as addresses are followed [case/register_origins].
enum class ResultFrom : uint8_t {
  kUnknown,
  kOperand,     // mov, cvta, cvt
  kSum,         // of two operands
  kDifference,  // of two operands
  kMasked,      // the first operand, rounded down
  kAddend,      // a product and the third operand
  kChoice,      // one of two operands
  kMemory,      // what lies at the address [also check/guesses, case/parameter_uses]
};

// What it says about the floating-point types of its registers [case/register_origins].
enum class OperandTypes : uint8_t {
  kUnknown,
  kOne,     // all operands have the last type that it names
  kNamed,   // the two types that it names: of the result, and of the operand
  kPassed,  // the result has the type of the first operand, whatever that is
};

// Kinds of tcgen05 work [check/operations, loads; timing/statements].
enum class TensorWork : uint8_t { kNone, kMma, kCopy, kCommit, kAllocate, kLoad };

// What is dropped or weakened, one mutant each: the groups of mutate/enumerate, where each has its
// name and its changes. kNone: leaving it out shows in results, or changes nothing.
enum class Mutants : uint8_t {
  kNone,
  kTensorMma,
  kTensorCopy,
  kTensorCommit,
  kTensorWaitLoad,
  kTensorWaitStore,
  kTensorFence,
  kTensorAlloc,
  kWgmma,
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
  kBulkCopy,
  kCopyGroup,
  kMbarrierInit,
  kMbarrierArrive,
  kMbarrierExpect,
  kMbarrierWait,
  kMbarrierInitFence,
  kFence,
  kWarpBarrier,
  kCtaBarrier,
  kClusterBarrier,
  kPreviousGrid,
};

struct Traits {
  Trait set = Trait::kNone;
  ResultFrom result = ResultFrom::kUnknown;
  OperandTypes types = OperandTypes::kUnknown;
  TensorWork tensor_work = TensorWork::kNone;
  Mutants mutants = Mutants::kNone;

  constexpr bool has(Trait any_of) const { return (set & any_of) != Trait::kNone; }

  // The same and one thing more.
  constexpr Traits with(Trait more) const {
    Traits t = *this;
    t.set = set | more;
    return t;
  }
  constexpr Traits with(ResultFrom from) const {
    Traits t = *this;
    t.result = from;
    return t;
  }
  constexpr Traits with(OperandTypes of) const {
    Traits t = *this;
    t.types = of;
    return t;
  }
  constexpr Traits with(TensorWork work) const {
    Traits t = *this;
    t.tensor_work = work;
    return t;
  }
  constexpr Traits with(Mutants group) const {
    Traits t = *this;
    t.mutants = group;
    return t;
  }
};

}  // namespace ptxsim
