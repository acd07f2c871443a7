#include "timing/schedule.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <utility>

namespace ptxsim::timing {
namespace {

// us for one unit of the demand.
double cost(Server server, const Values& v, const Sharing& sharing) {
  const double clk = 1e-3 / at(v, Parameter::kSmClock) * sharing.ctas_per_sm;
  const double schedulers = kSchedulers;
  switch (server) {
    case Server::kIssue:
      return clk * schedulers / at(v, Parameter::kIssueSlots) * at(v, Parameter::kEpilogueFactor);
    case Server::kMufu:
      return clk * 32 * schedulers / at(v, Parameter::kMufu) * at(v, Parameter::kEpilogueFactor);
    case Server::kDouble:
      return clk * 32 * schedulers / at(v, Parameter::kDoubleRate);
    case Server::kTensor:
      return clk / at(v, Parameter::kTensorRate);
    case Server::kMmaSync:
      return clk / (at(v, Parameter::kTensorRate) * at(v, Parameter::kMmaSyncPart));
    case Server::kShared:
      return clk / at(v, Parameter::kSharedBandwidth);
    case Server::kBarrier:
      return clk * at(v, Parameter::kBarrierWarp);
    case Server::kTmem:
      return clk / at(v, Parameter::kTmemLoad);
    case Server::kTma:
      return at(v, Parameter::kTmaIssue) * sharing.ctas_per_sm;
    case Server::kIngest:
      return 1e-3 / at(v, Parameter::kIngest) * sharing.ctas_per_sm;
    case Server::kL2:
      return 1e-6 / at(v, Parameter::kL2) * sharing.clusters;
    case Server::kL2Access:
      return 1e-6 / at(v, Parameter::kL2Access) * sharing.clusters;
    case Server::kHbm:
      return 1e-6 / at(v, Parameter::kHbm) * sharing.clusters * sharing.from_memory;
    case Server::kAtomics:
      return 1e-3 / at(v, Parameter::kAtomicRate) * sharing.clusters;
    case Server::kCount:
      break;
  }
  return 0;
}

class Run {
 public:
  Run(const Work& work, const Values& values, const Sharing& sharing)
      : work_(work), values_(values), missing_(work.pieces.size()) {
    for (size_t i = 0; i < kNumServers; ++i)
      costs_[i] = cost(static_cast<Server>(i), values, sharing);
    for (size_t i = 0; i < delays_.size(); ++i)
      delays_[i] = microseconds(static_cast<Delay>(i), values);
    double& from_memory = delays_[static_cast<size_t>(Delay::kGlobalLoad)];
    const double from_l2 = delays_[static_cast<size_t>(Delay::kL2Load)];
    from_memory = from_l2 + sharing.from_memory * (from_memory - from_l2);
    // What a first load takes more is for what the launch before has left in caches, too.
    delays_[static_cast<size_t>(Delay::kFirstLoad)] -=
        (1 - sharing.from_memory) * at(values, Parameter::kFirstLoadExtra);
    line_.pieces.resize(work.pieces.size());
    line_.demands.resize(work.demands.size());
  }

  Timeline run();

 private:
  struct Unit {
    double free = 0;
    int64_t last = -1;  // the demand that it served last
  };
  void note_followers();
  void find_ready(uint32_t number);
  void serve(uint32_t number);
  Unit& unit_of(const Demand& demand);

  const Work& work_;
  const Values& values_;
  double delay_of(Delay delay) const { return delays_[static_cast<size_t>(delay)]; }

  std::array<double, kNumServers> costs_{};
  std::array<double, static_cast<size_t>(Delay::kCount)> delays_{};
  std::array<std::vector<Unit>, kNumServers> units_;
  std::vector<uint32_t> missing_;  // pieces that a piece still waits for
  // Pieces that wait for piece i, in ascending order: from first_follower_[i] to that of i + 1. A
  // vector for each piece took a third of all time.
  std::vector<uint32_t> followers_, first_follower_;
  using Event = std::pair<double, uint32_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Timeline line_;
};

void Run::note_followers() {
  const auto for_each_wait = [&](auto&& note) {
    for (uint32_t i = 0; i < work_.pieces.size(); ++i) {
      const Piece& piece = work_.pieces[i];
      if (piece.previous >= 0 && work_.actors[piece.actor].sequence != Sequence::kFree)
        note(i, static_cast<uint32_t>(piece.previous));
      for (const After& after : work_.afters_of(piece)) note(i, after.piece);
    }
  };
  std::vector<uint32_t>& first = first_follower_;
  first.assign(work_.pieces.size() + 1, 0);
  for_each_wait([&](uint32_t follower, uint32_t before) {
    ++missing_[follower];
    ++first[before + 1];
  });
  for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  followers_.resize(first.back());
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  for_each_wait([&](uint32_t follower, uint32_t before) { followers_[next[before]++] = follower; });
}

void Run::find_ready(uint32_t number) {
  const Piece& piece = work_.pieces[number];
  Times& times = line_.pieces[number];
  const auto wait_until = [&](double time, Cause cause) {
    if (times.cause.piece >= 0 && time <= times.ready) return;
    times.ready = std::max(times.ready, time);
    times.cause = cause;
  };
  if (piece.previous >= 0) {
    const Times& before = line_.pieces[static_cast<size_t>(piece.previous)];
    const Sequence sequence = work_.actors[piece.actor].sequence;
    if (sequence == Sequence::kSerial) wait_until(before.end, {piece.previous});
    if (sequence == Sequence::kPipelined)
      wait_until(before.ready, {piece.previous, Delay::kNone, true});
  }
  for (const After& after : work_.afters_of(piece))
    wait_until(line_.pieces[after.piece].end + delay_of(after.delay),
               {static_cast<int32_t>(after.piece), after.delay});
  events_.emplace(times.ready, number);
}

Run::Unit& Run::unit_of(const Demand& demand) {
  std::vector<Unit>& units = units_[static_cast<size_t>(demand.server)];
  if (demand.unit >= units.size()) units.resize(demand.unit + 1);
  return units[demand.unit];
}

void Run::serve(uint32_t number) {
  const Piece& piece = work_.pieces[number];
  Times& times = line_.pieces[number];
  const double delay = delay_of(piece.delay), chain = microseconds(piece.chain, values_);
  const double arrival = times.ready + (piece.delay_first ? chain + delay : 0);
  times.served = std::max(arrival, times.ready + piece.least_us + chain);
  for (uint32_t i = 0; i < piece.num_demands; ++i) {
    const int64_t index = piece.first_demand + i;
    const Demand& demand = work_.demands[static_cast<size_t>(index)];
    Served& served = line_.demands[static_cast<size_t>(index)];
    Unit& unit = unit_of(demand);
    const double needs = demand.amount * costs_[static_cast<size_t>(demand.server)];
    // A load's bytes come at the end of its latency: a server that is free by then adds nothing.
    const double earliest = piece.delay_first ? std::max(times.ready, arrival - needs) : arrival;
    served.begin = std::max(earliest, unit.free);
    served.end = served.begin + needs;
    served.behind = unit.free > earliest ? unit.last : -1;
    unit.free = served.end;
    unit.last = index;
    if (served.end > times.served) {
      times.served = served.end;
      times.slowest = index;
    }
  }
  if (piece.previous >= 0 && work_.actors[piece.actor].sequence == Sequence::kPipelined) {
    const double before = line_.pieces[static_cast<size_t>(piece.previous)].served;
    if (before > times.served) {
      times.served = before;
      times.slowest = -1;
      times.behind_previous = true;
    }
  }
  times.end = times.served + (piece.delay_first ? 0 : delay);
  if (times.end >= line_.end) {
    line_.end = times.end;
    line_.last = number;
  }
}

Timeline Run::run() {
  note_followers();
  for (uint32_t i = 0; i < work_.pieces.size(); ++i)
    if (missing_[i] == 0) find_ready(i);
  while (!events_.empty()) {
    const uint32_t number = events_.top().second;
    events_.pop();
    serve(number);
    for (uint32_t i = first_follower_[number]; i < first_follower_[number + 1]; ++i)
      if (--missing_[followers_[i]] == 0) find_ready(followers_[i]);
  }
  return std::move(line_);
}

}  // namespace

Timeline schedule(const Work& work, const Values& values, const Sharing& sharing) {
  return Run(work, values, sharing).run();
}

double busiest_server(const Work& work, const Values& values, const Sharing& sharing) {
  std::array<std::vector<double>, kNumServers> amounts;
  for (const Demand& demand : work.demands) {
    std::vector<double>& units = amounts[static_cast<size_t>(demand.server)];
    if (demand.unit >= units.size()) units.resize(demand.unit + 1);
    units[demand.unit] += demand.amount;
  }
  double longest = 0;
  for (size_t i = 0; i < kNumServers; ++i)
    for (const double amount : amounts[i])
      longest = std::max(longest, amount * cost(static_cast<Server>(i), values, sharing));
  return longest;
}

}  // namespace ptxsim::timing
