// What the clock knows of a GPU: rates, latencies and fixed costs, each with the range that it may
// lie in, how it is known, and from where. One JSON file for each GPU, gpus/*.json; docs/clock.md
// has the list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ptxsim/error.hpp"

namespace ptxsim::timing {

enum class Parameter : uint8_t {
  kSmClock,     // GHz
  kNumSms,      //
  kTensorRate,  // multiply-adds of 16 bits per clk and SM; of 8 bits twice, of 4 bits four times
  kSharedBandwidth,  // B per clk and SM, operands of MMAs
  kMmaLatency,       // us from the last MMA's turn to its commit being visible
  kTmaIssue,         // us per instruction
  kLoadLatency,      // us from a bulk load's issue to its arrival
  kFirstLoadExtra,   // us more for the first of a CTA: descriptors, cold TLBs and memory
  kHbm,              // TB/s of the whole GPU
  kL2,               // TB/s of the whole GPU, delivered to SMs
  kIngest,           // GB/s that one SM takes in
  kBarrierHop,       // us from an mbarrier's last arrival to the waiting thread
  kNamedBarrier,     // us of bar.sync
  kClusterBarrier,   // us of barrier.cluster
  kTmemLoad,         // B per clk and SM
  kTmemLatency,      // us
  kTmemAlloc,        // us
  kMufu,             // lanes per clk and SM
  kIssueSlots,       // warp instructions per clk and SM
  kEpilogueFactor,   // part of MUFU and issue time that is not hidden
  kEpilogueTail,     // us from the last statement of a warp that stores to its stores being done
  kSetup,            // us from a grid's start to the first load's issue
  kLaunchGap,        // us between grids of a stream
  kPdlGap,           // us, the same with programmatic dependent launch
  kExit,             // us
  kTileSwitch,       // us between tiles of a CTA, and between waves of CTAs
  kGlobalLatency,    // us of a load that comes from memory
  kGraphGap,         // us between grids of a graph
  kStart,            // us from a grid's start to a warp's first ordinary load or store
  kStoreTail,        // us from the last ordinary store of a warp to its being done
  kCtaStart,         // us of an SM for each CTA that it starts
  kL2Latency,        // us of a load that L2 has
  kAtomicLatency,    // us of an atomic with a result
  kL2Access,         // TB/s of the whole GPU, ordinary loads and stores
  kL2Bytes,          // MiB that stay in L2 from one launch to the next
  kAtomicRate,       // of the whole GPU
  kAtomicAddress,    // of each atomic after another at the same address
  kBarrierWarp,      // clk of an SM for each warp that arrives at a barrier
  kDoubleRate,       // lanes per clk and SM
  kMmaSyncPart,      // of the tensor rate that mma.sync reaches
  kAluClk,           // clk, as the other latencies of latency.hpp
  kFmaClk,
  kDoubleClk,
  kFunctionClk,
  kSharedClk,
  kConflictClk,
  kL1Clk,
  kShuffleClk,
  kVoteClk,
  kMmaSyncClk,
  kBranchClk,
  kSharedOfSm,       // KiB of shared memory that CTAs of an SM have together
  kL1Bytes,          // KiB of L1 and shared memory
  kThreadsOfSm,      //
  kCtasOfSm,         //
  kSustained,        // T multiply-adds of 16 bits per s of the whole GPU at its power limit
  kSustainedNarrow,  // the same of 4-bit operands, of which four count as one
  kRoleError,   // as kModelError, of kernels whose warps have roles: bulk copies, asynchronous MMAs
  kModelError,  // what the model leaves out, as a factor on the time inside a kernel that is run
  // What a launch of 4-bit operands would need to take the power limit by itself: T multiply-adds
  // a s, as kSustainedNarrow, and TB/s of memory. Its parts of both add up.
  kPowerNarrow,
  kPowerMemory,
  kCount
};
// Those before it are drawn by a generator of their own: an interval does not change when
// parameters are added behind them.
inline constexpr Parameter kFirstOfLater = Parameter::kPowerNarrow;
inline constexpr size_t kNumParameters = static_cast<size_t>(Parameter::kCount);
const char* name_of(Parameter parameter);  // the key in the file

using Values = std::array<double, kNumParameters>;
inline double at(const Values& values, Parameter p) { return values[static_cast<size_t>(p)]; }
inline double& at(Values& values, Parameter p) { return values[static_cast<size_t>(p)]; }

struct Known {
  double value = 0, low = 0, high = 0;
  std::string kind;  // measured, published, derived, fitted, assumed
  std::string source;
};

struct GpuParameters {
  std::string name;  // "NVIDIA B200"
  std::array<Known, kNumParameters> known;

  Values values() const;
};

// `file`: for messages. Every parameter must be there, positive, within its range and with a
// source.
Result<GpuParameters> parse_parameters(std::string_view json, const std::string& file);

// The file of a GPU that is built in ("b200", "h200"); empty: there is none of that name.
std::string_view built_in_parameters(std::string_view gpu);
std::string built_in_gpus();  // "b200, h200"

}  // namespace ptxsim::timing
