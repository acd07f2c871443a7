// Which clusters run at the same time, and when a launch is given up or watched from outside.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "machine/execution.hpp"
#include "machine/machine.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t kReservedSharedBytes = 1024;  // of each CTA
// Warp instructions of each resident warp without a cluster's begin or end, after which more
// clusters start: the first time, and from then on.
constexpr uint64_t kFirstPatience = 32 * 1024, kLaterPatience = 2 * 1024;
constexpr uint64_t kWatchEvery = 1 << 16;  // warp instructions

uint64_t warps_of(const Launch& launch) {
  return (volume(launch.block) + kWarpSize - 1) / kWarpSize * volume(launch.cluster);
}

}  // namespace

uint32_t clusters_that_fit(const Launch& launch, uint64_t shared_bytes, const Options& options) {
  const uint64_t warps = std::max<uint64_t>((volume(launch.block) + kWarpSize - 1) / kWarpSize, 1);
  const uint64_t on_an_sm = std::min<uint64_t>(
      {options.sm.threads / (warps * kWarpSize),
       options.sm.shared_bytes / (shared_bytes + kReservedSharedBytes), options.sm.ctas});
  const uint64_t clusters =
      on_an_sm * options.num_sms / std::max<uint64_t>(volume(launch.cluster), 1);
  return static_cast<uint32_t>(std::min<uint64_t>(clusters, options.most_clusters));
}

void Machine::fill_places() {
  while (resident_.size() < places_ && !pending_clusters_.empty()) {
    launch_next_cluster();
    last_change_ = stats_.warp_instructions;
  }
}

void Machine::admit_more() {
  places_ = std::min(places_ * 2, most_places_);
  has_admitted_more_ = true;
}

void Machine::run_resident_once(bool& progress) {
  for (size_t i = 0; i < resident_.size();) {
    Cluster& cluster = *resident_[i];
    progress |= run_cluster(cluster);
    if (cluster.live_threads == 0 && cluster.async.empty()) {
      cluster.observers.tell([](Observer& o) { o.cluster_ended(); });
      resident_.erase(resident_.begin() + static_cast<ptrdiff_t>(i));
      last_change_ = stats_.warp_instructions;
      progress = true;
    } else {
      ++i;
    }
  }
}

void Machine::run() {
  began_ = std::chrono::steady_clock::now();
  while (!resident_.empty() || !pending_clusters_.empty()) {
    fill_places();
    watch();
    bool progress = false;
    run_resident_once(progress);
    const bool may_admit = !pending_clusters_.empty() && places_ < most_places_;
    if (!progress && !may_admit) report_deadlock();
    const uint64_t patience = (has_admitted_more_ ? kLaterPatience : kFirstPatience) *
                              resident_.size() * warps_of(launch_);
    if (may_admit && (!progress || stats_.warp_instructions - last_change_ > patience))
      admit_more();
  }
}

Place Machine::place_of_a_live_warp() const {
  for (const auto& cluster : resident_)
    for (const auto& cta : cluster->ctas)
      for (const auto& warp : cta->warps)
        if (warp->live != 0)
          return place_of(program_->insns[warp->pc[std::countr_zero(warp->live)]].statement);
  return {};
}

void Machine::watch() {
  if (options_.stop != nullptr && *options_.stop) {
    Error error{ErrorKind::kStopped,
                fmt::format("stopped after {} warp instructions", stats_.warp_instructions),
                place_of_a_live_warp()};
    if (stats_.warp_instructions != 0)
      error.message +=
          fmt::format(" of kernel '{}'{}", program_->entry->name, waiting_clusters_text());
    throw Fault(std::move(error));
  }
  if (options_.max_seconds <= 0 && !options_.on_progress) return;
  if (options_.max_seconds > 0) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
    if (passed.count() > options_.max_seconds) {
      Error error{
          ErrorKind::kBudget,
          fmt::format("the launch of kernel '{}' runs for {:.1f} s, {} warp instructions so "
                      "far; the budget is {} s{}",
                      program_->entry->name, passed.count(), stats_.warp_instructions,
                      options_.max_seconds, waiting_clusters_text()),
          place_of_a_live_warp()};
      throw Fault(std::move(error));
    }
  }
  if (options_.on_progress && stats_.warp_instructions >= next_watch_) {
    next_watch_ = stats_.warp_instructions + kWatchEvery;
    options_.on_progress({stats_.warp_instructions, place_of_a_live_warp()});
  }
}

std::string Machine::waiting_clusters_text() const {
  const std::string spins =
      fmt::format("; no cluster began or ended during the last {} of them",
                  stats_.warp_instructions - std::min(last_change_, stats_.warp_instructions));
  if (pending_clusters_.empty()) return spins;
  return fmt::format(
      "{}; {} clusters of the grid have not begun, as {} run at the same time (--resident): those "
      "that wait for them wait in vain",
      spins, pending_clusters_.size(), places_);
}

}  // namespace ptxsim
