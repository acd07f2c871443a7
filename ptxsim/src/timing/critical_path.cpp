#include "timing/critical_path.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace ptxsim::timing {
namespace {

// Walks from the end to the beginning; each step moves `time_` back and says what the time went
// into.
class Walk {
 public:
  Walk(const Work& work, const Timeline& line)
      : work_(work), line_(line), piece_of_(work.demands.size()) {
    for (uint32_t i = 0; i < work.pieces.size(); ++i) {
      const Piece& p = work.pieces[i];
      std::fill_n(piece_of_.begin() + p.first_demand, p.num_demands, i);
    }
  }

  std::vector<Stretch> run() {
    time_ = line_.end;
    int64_t piece = line_.last;
    while (piece >= 0) piece = from_end(static_cast<uint32_t>(piece));
    return std::move(path_);
  }

 private:
  void go_back_to(double time, const char* label, uint32_t piece) {
    if (time < time_) path_.push_back({label, piece, time, time_});
    time_ = std::min(time_, time);
  }
  // Each returns the piece to go on with at its end, -1 at the beginning.
  int64_t from_end(uint32_t number) {
    const Piece& p = work_.pieces[number];
    if (!p.delay_first) go_back_to(line_.pieces[number].served, name_of(p.delay), number);
    return from_served(number);
  }
  int64_t from_served(uint32_t number) {
    const Times& times = line_.pieces[number];
    if (times.behind_previous)
      return from_served(static_cast<uint32_t>(work_.pieces[number].previous));
    if (times.slowest >= 0) return from_demand(static_cast<size_t>(times.slowest));
    const Piece& p = work_.pieces[number];
    go_back_to(times.ready, name_of(p.delay_first ? p.delay : Delay::kChain), number);
    return from_ready(number);
  }
  int64_t from_demand(size_t index) {
    while (true) {
      const uint32_t number = piece_of_[index];
      const Served& served = line_.demands[index];
      go_back_to(served.begin, name_of(work_.demands[index].server), number);
      if (served.behind < 0) {
        const Piece& p = work_.pieces[number];
        go_back_to(line_.pieces[number].ready, name_of(p.delay), number);
        return from_ready(number);
      }
      index = static_cast<size_t>(served.behind);
    }
  }
  int64_t from_ready(uint32_t number) {
    const Cause& cause = line_.pieces[number].cause;
    if (cause.piece < 0) return -1;
    const auto before = static_cast<uint32_t>(cause.piece);
    if (cause.is_begin_only) return from_ready(before);
    go_back_to(line_.pieces[before].end, name_of(cause.delay), number);
    return cause.piece;
  }

  const Work& work_;
  const Timeline& line_;
  std::vector<uint32_t> piece_of_;
  std::vector<Stretch> path_;
  double time_ = 0;
};

// What a piece's end was set by.
const char* holder_of(const Work& work, const Timeline& line, uint32_t number) {
  const Times* times = &line.pieces[number];
  while (times->behind_previous) {
    number = static_cast<uint32_t>(work.pieces[number].previous);
    times = &line.pieces[number];
  }
  if (times->slowest >= 0) return name_of(work.demands[static_cast<size_t>(times->slowest)].server);
  const Piece& p = work.pieces[number];
  return name_of(p.delay != Delay::kNone ? p.delay : Delay::kChain);
}

}  // namespace

std::vector<Stretch> critical_path(const Work& work, const Timeline& line) {
  return Walk(work, line).run();
}

std::vector<Share> shares_of(const std::vector<Stretch>& path) {
  std::map<std::string, double> sums;
  for (const Stretch& s : path) sums[s.label] += s.to - s.from;
  std::vector<Share> shares;
  for (const auto& [label, us] : sums) shares.push_back({label, us});
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.us > b.us; });
  return shares;
}

std::vector<Wait> waits_of(const Work& work, const Timeline& line, double least_us) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<std::pair<uint32_t, Key>, double> by_actor;
  for (uint32_t i = 0; i < work.pieces.size(); ++i) {
    const Piece& p = work.pieces[i];
    const Actor& actor = work.actors[p.actor];
    const Times& times = line.pieces[i];
    if (actor.sequence != Sequence::kSerial || times.cause.piece < 0 ||
        times.cause.piece == p.previous)
      continue;
    const double since = p.previous < 0 ? 0 : line.pieces[static_cast<size_t>(p.previous)].end;
    const auto before = static_cast<uint32_t>(times.cause.piece);
    const Piece& other = work.pieces[before];
    const Key key{actor.role, work.actors[other.actor].role, other.what,
                  holder_of(work, line, before)};
    by_actor[{p.actor, key}] += times.ready - since;
  }
  std::map<Key, double> longest;
  for (const auto& [who, us] : by_actor) longest[who.second] = std::max(longest[who.second], us);
  std::vector<Wait> waits;
  for (const auto& [key, us] : longest)
    if (us >= least_us)
      waits.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), us});
  std::stable_sort(waits.begin(), waits.end(),
                   [](const Wait& a, const Wait& b) { return a.us > b.us; });
  return waits;
}

}  // namespace ptxsim::timing
