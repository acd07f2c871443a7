// A GPU with round numbers, so that times can be computed by hand: a clk is 0.001 us, every server
// does 1000 units in a us, but for L2, which does 2000, and TMA issue, which takes next to nothing.
#pragma once

#include "timing/parameters.hpp"

namespace ptxsim_test {

inline ptxsim::timing::Values round_values() {
  using enum ptxsim::timing::Parameter;
  ptxsim::timing::Values v{};
  at(v, kSmClock) = 1;
  at(v, kNumSms) = 2;
  at(v, kTensorRate) = 1;
  at(v, kSharedBandwidth) = 1;
  at(v, kMmaLatency) = 0.2;
  at(v, kTmaIssue) = 1e-9;
  at(v, kLoadLatency) = 1;
  at(v, kFirstLoadExtra) = 0.5;
  at(v, kHbm) = 0.001;
  at(v, kL2) = 0.002;
  at(v, kIngest) = 1;
  at(v, kBarrierHop) = 0.1;
  at(v, kNamedBarrier) = 0.02;
  at(v, kClusterBarrier) = 0.2;
  at(v, kTmemLoad) = 1;
  at(v, kTmemLatency) = 0.04;
  at(v, kTmemAlloc) = 0.25;
  at(v, kMufu) = 16;
  at(v, kIssueSlots) = 4;
  at(v, kEpilogueFactor) = 1;
  at(v, kEpilogueTail) = 0.05;
  at(v, kSetup) = 0.3;
  at(v, kLaunchGap) = 2;
  at(v, kPdlGap) = 0.5;
  at(v, kExit) = 0.15;
  at(v, kTileSwitch) = 0.6;
  at(v, kGlobalLatency) = 1;
  at(v, kGraphGap) = 1;
  at(v, kStart) = 0.1;
  at(v, kStoreTail) = 0.05;
  at(v, kCtaStart) = 0.01;
  at(v, kL2Latency) = 0.4;
  at(v, kAtomicLatency) = 0.5;
  at(v, kL2Access) = 0.002;
  at(v, kL2Bytes) = 1;
  at(v, kAtomicRate) = 1;
  at(v, kAtomicAddress) = 1;
  at(v, kBarrierWarp) = 2;
  at(v, kDoubleRate) = 64;
  at(v, kMmaSyncPart) = 0.5;
  at(v, kAluClk) = 4;
  at(v, kFmaClk) = 4;
  at(v, kDoubleClk) = 8;
  at(v, kFunctionClk) = 16;
  at(v, kSharedClk) = 24;
  at(v, kConflictClk) = 2;
  at(v, kL1Clk) = 32;
  at(v, kShuffleClk) = 24;
  at(v, kVoteClk) = 12;
  at(v, kMmaSyncClk) = 32;
  at(v, kBranchClk) = 10;
  at(v, kSharedOfSm) = 228;
  at(v, kL1Bytes) = 256;
  at(v, kThreadsOfSm) = 2048;
  at(v, kCtasOfSm) = 32;
  at(v, kSustained) = 1;
  at(v, kSustainedNarrow) = 1;
  at(v, kRoleError) = 1;
  at(v, kModelError) = 1;
  at(v, kPowerNarrow) = 1;
  at(v, kPowerMemory) = 1e6;
  return v;
}

constexpr double kExact = 1e-6;  // us

}  // namespace ptxsim_test
