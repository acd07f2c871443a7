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

namespace {

constexpr Parameter kOfServers[kNumServers] = {
    Parameter::kIssueSlots, Parameter::kMufu,        Parameter::kDoubleRate,
    Parameter::kTensorRate, Parameter::kMmaSyncPart, Parameter::kSharedBandwidth,
    Parameter::kTmemLoad,   Parameter::kTmaIssue,    Parameter::kIngest,
    Parameter::kL2,         Parameter::kL2Access,    Parameter::kHbm,
    Parameter::kAtomicRate, Parameter::kBarrierWarp};

std::optional<Parameter> parameter_of(Delay delay) {
  switch (delay) {
    case Delay::kSetup:
      return Parameter::kSetup;
    case Delay::kLoad:
    case Delay::kFirstLoad:
      return Parameter::kLoadLatency;
    case Delay::kMma:
      return Parameter::kMmaLatency;
    case Delay::kBarrierHop:
      return Parameter::kBarrierHop;
    case Delay::kNamedBarrier:
      return Parameter::kNamedBarrier;
    case Delay::kClusterBarrier:
      return Parameter::kClusterBarrier;
    case Delay::kTmemLoad:
      return Parameter::kTmemLatency;
    case Delay::kTmemAlloc:
      return Parameter::kTmemAlloc;
    case Delay::kEpilogueTail:
      return Parameter::kEpilogueTail;
    case Delay::kTileSwitch:
      return Parameter::kTileSwitch;
    case Delay::kGlobalLoad:
      return Parameter::kGlobalLatency;
    case Delay::kL2Load:
      return Parameter::kL2Latency;
    case Delay::kAtomic:
      return Parameter::kAtomicLatency;
    case Delay::kStart:
      return Parameter::kStart;
    case Delay::kStoreTail:
      return Parameter::kStoreTail;
    case Delay::kChain:
    case Delay::kNone:
    case Delay::kCount:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Parameter> parameter_of(std::string_view label) {
  for (size_t i = 0; i < kNumServers; ++i)
    if (label == name_of(static_cast<Server>(i))) return kOfServers[i];
  for (size_t i = 0; i < static_cast<size_t>(Delay::kCount); ++i)
    if (label == name_of(static_cast<Delay>(i))) return parameter_of(static_cast<Delay>(i));
  return std::nullopt;
}

double microseconds(Delay delay, const Values& v) {
  const std::optional<Parameter> parameter = parameter_of(delay);
  if (!parameter) return 0;
  return at(v, *parameter) + (delay == Delay::kFirstLoad ? at(v, Parameter::kFirstLoadExtra) : 0);
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
