#include "timing/work.hpp"

#include <utility>

namespace ptxsim::timing {

const char* name_of(Server server) {
  static constexpr const char* kNames[kNumServers] = {
      "issue slots", "MUFU",      "FP64", "tensor pipe", "mma.sync", "shared memory", "TMEM",
      "TMA issue",   "SM ingest", "L2",   "L2 accesses", "HBM",      "atomics",       "barriers"};
  return kNames[static_cast<size_t>(server)];
}

const char* name_of(Delay delay) {
  static constexpr const char* kNames[static_cast<size_t>(Delay::kCount)] = {
      "nothing",     "setup",         "load latency",    "first load",   "MMA latency",
      "barrier hop", "named barrier", "cluster barrier", "TMEM latency", "TMEM allocation",
      "last stores", "tile switch",   "memory latency",  "L2 latency",   "atomic latency",
      "start",       "store latency", "chain of results"};
  return kNames[static_cast<size_t>(delay)];
}

double microseconds(Delay delay, const Values& v) {
  switch (delay) {
    case Delay::kSetup:
      return at(v, Parameter::kSetup);
    case Delay::kLoad:
      return at(v, Parameter::kLoadLatency);
    case Delay::kFirstLoad:
      return at(v, Parameter::kLoadLatency) + at(v, Parameter::kFirstLoadExtra);
    case Delay::kMma:
      return at(v, Parameter::kMmaLatency);
    case Delay::kBarrierHop:
      return at(v, Parameter::kBarrierHop);
    case Delay::kNamedBarrier:
      return at(v, Parameter::kNamedBarrier);
    case Delay::kClusterBarrier:
      return at(v, Parameter::kClusterBarrier);
    case Delay::kTmemLoad:
      return at(v, Parameter::kTmemLatency);
    case Delay::kTmemAlloc:
      return at(v, Parameter::kTmemAlloc);
    case Delay::kEpilogueTail:
      return at(v, Parameter::kEpilogueTail);
    case Delay::kTileSwitch:
      return at(v, Parameter::kTileSwitch);
    case Delay::kGlobalLoad:
      return at(v, Parameter::kGlobalLatency);
    case Delay::kL2Load:
      return at(v, Parameter::kL2Latency);
    case Delay::kAtomic:
      return at(v, Parameter::kAtomicLatency);
    case Delay::kStart:
      return at(v, Parameter::kStart);
    case Delay::kStoreTail:
      return at(v, Parameter::kStoreTail);
    case Delay::kChain:
    case Delay::kNone:
    case Delay::kCount:
      break;
  }
  return 0;
}

uint32_t Work::add_actor(std::string name, std::string role, Sequence sequence) {
  actors.push_back({std::move(name), std::move(role), sequence});
  last.push_back(-1);
  return static_cast<uint32_t>(actors.size() - 1);
}

uint32_t Work::add(Piece piece, std::span<const Demand> needs, std::span<const After> after) {
  const auto number = static_cast<uint32_t>(pieces.size());
  piece.previous = std::exchange(last[piece.actor], static_cast<int32_t>(number));
  piece.first_demand = static_cast<uint32_t>(demands.size());
  piece.num_demands = static_cast<uint32_t>(needs.size());
  demands.insert(demands.end(), needs.begin(), needs.end());
  piece.first_after = static_cast<uint32_t>(afters.size());
  piece.num_after = static_cast<uint32_t>(after.size());
  afters.insert(afters.end(), after.begin(), after.end());
  pieces.push_back(piece);
  return number;
}

}  // namespace ptxsim::timing
