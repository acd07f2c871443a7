// What rows of the decoders' tables say of their instructions: presets, to which `with` adds what
// an instruction has besides. The meaning of each trait, and what asks for it: ir/traits.hpp.
#pragma once

#include "ptxsim/ir/traits.hpp"

namespace ptxsim::traits {

// Registers of registers.
inline constexpr Traits kComputing{Trait::kComputes};
// The same, of which every operand has the type that it names last: what floating-point
// arithmetic says of registers that are declared as bits.
inline constexpr Traits kArithmetic = kComputing.with(OperandTypes::kOne);
inline constexpr Traits kQuery{Trait::kQueries};

// Ordinary accesses of memory. Strong ones order.
inline constexpr Traits kLoad{Trait::kReads | Trait::kFollowed};
inline constexpr Traits kStore{Trait::kWrites};
inline constexpr Traits kAtomic{Trait::kUpdates | Trait::kStrong};
inline constexpr Traits kImage{Trait::kImage};
inline constexpr Traits kHint{Trait::kHints};
inline constexpr Traits kPrefetch{Trait::kHints | Trait::kPrefetches};

// Asynchronous ones: cp.async of the generic proxy, bulk copies of the async proxy.
inline constexpr Traits kAsyncStore{Trait::kWrites | Trait::kAsync | Trait::kGenericProxy};
inline constexpr Traits kAsyncUpdate{Trait::kUpdates | Trait::kAsync | Trait::kGenericProxy};
inline constexpr Traits kAsyncCopy{Trait::kCopies | Trait::kAsync | Trait::kGenericProxy};
inline constexpr Traits kBulkCopy{Trait::kCopies | Trait::kAsync | Trait::kBulk};
inline constexpr Traits kGroup{Trait::kGroup};

inline constexpr Traits kMultiplication{Trait::kMultiplies};
inline constexpr Traits kTensorMemory{Trait::kTensorMemory};

// Barriers that hold the thread until its loads are over, and those that do not (bar.warp,
// mbarrier); fences do.
inline constexpr Traits kBarrier{Trait::kBarrier | Trait::kWaitsForLoads};
inline constexpr Traits kLooseBarrier{Trait::kBarrier};
inline constexpr Traits kFence{Trait::kFence | Trait::kWaitsForLoads};

inline constexpr Traits kControl{Trait::kControls};

}  // namespace ptxsim::traits
