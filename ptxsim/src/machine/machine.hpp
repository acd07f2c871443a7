// Runs a launch: clusters, their warps and their asynchronous operations, under a schedule.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "machine/scheduler/async.hpp"
#include "ptxsim/ir/program.hpp"
#include "ptxsim/machine/launch.hpp"
#include "ptxsim/machine/memory.hpp"
#include "ptxsim/machine/observer.hpp"
#include "ptxsim/machine/printed.hpp"
#include "ptxsim/machine/stats.hpp"
#include "ptxsim/report.hpp"

namespace ptxsim {

struct Cta;
struct Cluster;
struct Warp;
struct Execution;

enum class TurnResult : uint8_t {
  kNothing,  // no lane could go on
  kRan,
  kYielded,  // ended with a poll that failed
};

// How many of the launch's clusters the SMs hold at once, by threads and shared memory: registers
// are not known.
uint32_t clusters_that_fit(const Launch& launch, uint64_t shared_bytes, const Options& options);

class Machine {
 public:
  Machine(std::shared_ptr<const Program> program, const Launch& launch, GlobalMemory& global,
          const Options& options, Reports& reports, std::vector<MakeObserver> observers);
  ~Machine();

  void run();  // throws Fault, completed with place and actor

  const Program& program() const { return *program_; }
  const Launch& launch() const { return launch_; }
  const Options& options() const { return options_; }
  GlobalMemory& global() { return global_; }
  Reports& reports() { return reports_; }
  Printed& printed() { return printed_; }
  Stats& stats() { return stats_; }
  const Stats& stats() const { return stats_; }
  const std::vector<uint8_t>& params() const { return launch_.params; }
  uint64_t module_global_address(uint32_t symbol) const;  // of a .global variable
  const std::vector<std::byte>& const_bank() const { return const_bank_; }
  uint64_t const_address(uint32_t symbol) const;
  uint64_t step() const { return stats_.warp_instructions; }  // a clock for %clock and traces

  // clusterlaunchcontrol: takes a cluster that has not been launched away from the grid. False when
  // there is none.
  bool cancel_pending_cluster(Dim3& first_ctaid);

  Place place_of(uint32_t statement) const;
  std::string actor_of(const Warp& warp, int lane) const;  // "CTA (0,1,0) rank 1, warp 2, lane 5"
  // What a message of a launch that does not end says more: whether clusters still wait for a
  // place. Empty: none does.
  std::string waiting_clusters_text() const;

 private:
  void launch_next_cluster();
  void fill_places();
  void admit_more();
  void run_resident_once(bool& progress);
  void watch();  // stop, seconds and progress
  Place place_of_a_live_warp() const;
  bool run_cluster(Cluster& cluster);  // false: nothing in it can go on
  TurnResult run_warp(Cluster& cluster, Warp& warp, uint32_t statements);
  void complete_one(Cluster& cluster);
  bool is_polling_in_vain(Cluster& cluster, uint32_t warps);
  bool wake_a_timeout(Cluster& cluster);
  void finish_cluster(Cluster& cluster);
  [[noreturn]] void report_deadlock();
  void lay_out_module_memory();
  void set_initial_addresses(uint32_t symbol);

  std::shared_ptr<const Program> program_;
  Launch launch_;
  GlobalMemory& global_;
  Options options_;
  Reports& reports_;
  std::vector<MakeObserver> make_observers_;
  Stats stats_;
  Printed printed_;
  std::vector<std::byte> const_bank_;
  std::map<uint32_t, uint64_t> symbol_addresses_;
  std::vector<std::unique_ptr<Cluster>> resident_;
  std::deque<uint32_t> pending_clusters_;
  uint32_t places_ = 0, most_places_ = 0;  // of resident clusters: now, and at the most
  uint64_t last_change_ = 0;               // warp instructions when a cluster last began or ended
  bool has_admitted_more_ = false;
  std::chrono::steady_clock::time_point began_;
  uint64_t next_watch_ = 0;  // in warp instructions
  uint32_t shared_bytes_ = 0;
  Random random_;
};

}  // namespace ptxsim
