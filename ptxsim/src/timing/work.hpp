// What a launch does, as the clock sees it: pieces of work in the order in which each actor does
// them, what each waits for, and what it takes of which server. Made by the recorder (from a run)
// or from a description; schedule.hpp says when each piece happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "timing/latency.hpp"
#include "timing/parameters.hpp"

namespace ptxsim::timing {

// Each serves one demand after the other. `unit` of a demand: which of them.
enum class Server : uint8_t {
  kIssue,     // one per scheduler; machine instructions of a warp
  kMufu,      // one per scheduler; warp instructions
  kDouble,    // one per scheduler; warp instructions of FP64
  kTensor,    // one per SM; multiply-adds of 16-bit operands
  kMmaSync,   // one per SM; multiply-adds of mma.sync
  kShared,    // one per SM; bytes that tensor cores read, and 128 for each access of its banks
  kTmem,      // one per SM; bytes
  kTma,       // one per SM; instructions
  kIngest,    // one per SM; bytes that arrive
  kL2,        // one; bytes delivered to this cluster's SMs, a multicast once
  kL2Access,  // one; bytes of ordinary loads, stores and atomics
  kHbm,       // one; bytes that come from memory or go there
  kAtomics,   // one; sectors of atomics
  kBarrier,   // one per SM; warps that arrive at a barrier of a CTA
  kCount
};
inline constexpr size_t kNumServers = static_cast<size_t>(Server::kCount);
const char* name_of(Server server);

// A fixed time besides what servers take. kNone: none.
enum class Delay : uint8_t {
  kNone,
  kSetup,
  kLoad,
  kFirstLoad,
  kMma,
  kBarrierHop,
  kNamedBarrier,
  kClusterBarrier,
  kTmemLoad,
  kTmemAlloc,
  kEpilogueTail,
  kTileSwitch,
  kGlobalLoad,  // that comes from memory
  kL2Load,
  kAtomic,  // until its result can be used
  kStart,
  kStoreTail,
  kChain,  // Piece::chain
  kCount
};
const char* name_of(Delay delay);
// The parameter that a server's or a delay's time comes from; of a chain none in particular.
std::optional<Parameter> parameter_of(std::string_view label);
double microseconds(Delay delay, const Values& values);  // not of kChain, which a piece has

// How the pieces of an actor follow each other.
enum class Sequence : uint8_t {
  kSerial,     // each begins when the last has ended: a warp
  kPipelined,  // begins in order and is served in order, latencies overlap: MMAs of a thread
  kFree,       // only servers and dependencies order them: loads in flight
};

struct Actor {
  std::string name;  // "CTA 0 warp 4"
  std::string role;  // "load"
  Sequence sequence = Sequence::kSerial;
};

struct Demand {
  Server server;
  uint32_t unit = 0;
  double amount = 0;
};

// Begins no earlier than `piece` has ended, and `delay` later.
struct After {
  uint32_t piece;
  Delay delay = Delay::kNone;
};

struct Piece {
  uint32_t actor = 0;
  int32_t previous = -1;  // of the same actor
  const char* what = "";  // a literal: "load", "mma", ...
  int32_t stage = -1;     // colours the timeline
  Delay delay = Delay::kNone;
  bool delay_first =
      false;            // the delay passes before servers are needed (loads), or else after them
  Chain chain{};        // takes at least so long, or, of a load, is issued so much later
  double least_us = 0;  // and takes at least so long
  uint32_t first_demand = 0, num_demands = 0;
  uint32_t first_after = 0, num_after = 0;
};

class Work {
 public:
  uint32_t add_actor(std::string name, std::string role, Sequence sequence);
  // The pieces of `after` come before it; all demands are served at the same time. Returns its
  // number.
  uint32_t add(Piece piece, std::span<const Demand> demands, std::span<const After> after);

  std::vector<Actor> actors;
  std::vector<Piece> pieces;
  std::vector<Demand> demands;
  std::vector<After> afters;
  std::vector<int32_t> last;  // piece of each actor; -1: none

  std::span<const Demand> demands_of(const Piece& p) const {
    return {demands.data() + p.first_demand, p.num_demands};
  }
  std::span<const After> afters_of(const Piece& p) const {
    return {afters.data() + p.first_after, p.num_after};
  }
};

// What an MMA of `macs` multiply-adds in each SM takes of its SM. An operand row has 32 bytes of K
// in every kind; in a pair an SM reads half of B itself, and the other half costs half as much
// again (SemiAnalysis' microbenchmarks of B200, umma_throughput: clk = max(N/2, 32 + 0.25 N) for
// one CTA, 32 + 0.1875 N for a pair, at 128 B a clk). `rows_of_a` is 0 where A is in tensor memory
// or the collector has it.
inline double shared_bytes_of_mma(double rows_of_a, double n, bool is_pair) {
  return 32 * (rows_of_a + (is_pair ? 0.75 : 1) * n);
}

inline constexpr uint32_t kSchedulers = 4;  // of an SM
inline uint32_t scheduler_of(uint32_t cta, uint32_t warp) {
  return cta * kSchedulers + warp % kSchedulers;
}

}  // namespace ptxsim::timing
