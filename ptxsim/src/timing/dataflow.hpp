// When a warp's statements can be issued, as far as registers say: each waits for those that it
// reads, not for the statement before it, for ptxas puts loads in front of what does not need them.
// It does so within a piece of straight code: at the end of a loop's round all its statements have
// been issued. (Rounds of a short loop that ptxas unrolls are one piece.)
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "ptxsim/ir/program.hpp"
#include "timing/latency.hpp"

namespace ptxsim::timing {

// A time in a warp's life: after the end of a piece of work, and a chain of latencies later.
// `clk`, of a GPU of no particular kind and from the warp's beginning, says which of two is later.
struct Moment {
  double clk = 0;
  uint32_t piece = 0;
  bool is_load = false;  // the piece is a load that the warp has not waited for yet
  Chain after{};
};

class Dataflow {
 public:
  explicit Dataflow(const Program& program);

  // The warp's pieces go on after `piece`, which comes after everything that was issued.
  void go_on_after(uint32_t piece);
  // The statement's issue. Loads that it waits for are added to `loads`.
  const Moment& issue(const Insn& insn, std::vector<uint32_t>& loads);
  // The statement issued last stores to memory of this space: later loads may read what it writes,
  // as far as ptxas knows, and stay behind it.
  void stores(Space space) { stored_[static_cast<size_t>(space)] = now_; }
  // The statement issued last loads from there.
  void loads_after_stores(Space space);
  // What the statement issued last writes can be used after this.
  void completes(const Insn& insn, const Chain& chain);
  void completes_with_load(const Insn& insn, uint32_t load, double nominal_latency_clk);
  // It jumped to `target`.
  void jumped(const Insn& insn, uint32_t target);

  const Moment& issued_now() const { return now_; }      // of the statement issued last
  const Moment& issued_last() const { return issued_; }  // of all statements
  uint32_t piece() const { return piece_; }

 private:
  void set_written(const Insn& insn, const Moment& when);

  const Program& program_;
  std::vector<uint32_t> number_of_use_;  // of Program::uses: the register's, from 0
  std::vector<Moment> ready_;            // by register
  Moment floor_, issued_, now_;          // now_: of the statement issued last
  std::array<Moment, static_cast<size_t>(Space::kShared) + 1> stored_{};  // by space
  uint32_t piece_ = 0;
  struct Rounds {
    bool unrolled = false;
    uint32_t done = 0;
  };
  std::unordered_map<uint32_t, Rounds> rounds_;  // of each jump back
};

}  // namespace ptxsim::timing
