// Executes statements of one warp: which lanes go together, when they converge, and what a
// handler's outcome means.
//
// Lanes with the lowest program counter go first, so that lanes which left a branch wait where the
// paths meet. A statement that needs lanes which are elsewhere parks those that have come until the
// others arrive.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "machine/execution.hpp"
#include "machine/machine.hpp"
#include "machine/registers/call_stack.hpp"
#include "machine/registers/owned.hpp"
#include "machine/registers/undefined.hpp"

namespace ptxsim {
namespace {

struct Group {
  uint32_t lanes = 0;
  uint32_t pc = 0;
  uint32_t limit = 0xffffffffu;  // the pc at which other lanes of the warp are met
};

bool is_stuck(const Cluster& cluster, const Warp& warp, int lane) {
  return (warp.blocked >> lane & 1) != 0 && warp.blocked_at[lane] == cluster.version;
}

bool choose_group(const Cluster& cluster, Warp& warp, Group& group) {
  uint32_t stuck = 0;
  for (uint32_t left = warp.live & warp.blocked; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (is_stuck(cluster, warp, lane)) stuck |= 1u << lane;
  }
  uint32_t candidates = warp.live & ~warp.parked & ~stuck;
  if (candidates == 0) return false;
  if ((candidates & ~warp.yielded) != 0) candidates &= ~warp.yielded;
  warp.yielded = 0;
  uint32_t lowest = 0xffffffffu;
  for (uint32_t left = candidates; left != 0; left &= left - 1)
    lowest = std::min(lowest, warp.pc[std::countr_zero(left)]);
  group = {0, lowest, 0xffffffffu};
  for (uint32_t left = warp.live & ~stuck; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (warp.pc[lane] == lowest) {
      group.lanes |= 1u << lane;
    } else if (warp.pc[lane] > lowest) {
      group.limit = std::min(group.limit, warp.pc[lane]);
    }
  }
  // Lanes that were blocked or parked at this statement try it again together with the others.
  warp.blocked &= ~group.lanes;
  warp.parked &= ~group.lanes;
  return true;
}

// Whether a converging statement can execute; narrows `exec` to the lanes that its member mask
// names.
bool has_converged(const Execution& x, const Insn& insn, const Group& group, uint32_t& exec) {
  if (insn.convergence == Convergence::kAligned) {
    if (group.lanes != x.warp.live) return false;
    if (exec != group.lanes)
      throw Fault(fmt::format(
          "aligned instruction executed by lanes {:08x} of {:08x}, as its guard differs; all "
          "lanes of the warp must execute it (R12)",
          exec, group.lanes));
    return true;
  }
  const uint32_t* members = x.source<uint32_t>(insn.members);
  const int lane = std::countr_zero(exec);
  const uint32_t named = members[lane];
  if ((named >> lane & 1) == 0)
    throw Fault(
        fmt::format("member mask {:08x} does not name the executing lane {} (R12)", named, lane),
        ErrorKind::kFault, lane);
  const uint32_t needed = named & x.warp.live;
  if ((needed & ~exec) != 0) {
    if ((needed & group.lanes & ~exec) != 0)
      throw Fault(fmt::format("member mask {:08x} names lanes {:08x} whose guard is false (R12)",
                              named, needed & group.lanes & ~exec),
                  ErrorKind::kFault, lane);
    return false;
  }
  uint32_t same = 0;
  for (uint32_t left = exec & named; left != 0; left &= left - 1) {
    const int other = std::countr_zero(left);
    if (members[other] != named)
      throw Fault(fmt::format("member masks {:08x} of lane {} and {:08x} of lane {} differ (R12)",
                              named, lane, members[other], other),
                  ErrorKind::kFault, other);
    same |= 1u << other;
  }
  exec = same;
  return true;
}

void set_pc(Warp& warp, uint32_t lanes, uint32_t pc) {
  for (; lanes != 0; lanes &= lanes - 1) warp.pc[std::countr_zero(lanes)] = pc;
}

void zero_tickets(Warp& warp, uint32_t lanes) {
  for (uint32_t left = lanes; left != 0; left &= left - 1) warp.ticket[std::countr_zero(left)] = 0;
  warp.ticketed &= ~lanes;
}

void exit_lanes(Execution& x, uint32_t lanes) {
  Warp& warp = x.warp;
  x.tell([&](Observer& o) { o.threads_exited(x, lanes); });
  warp.live &= ~lanes;
  warp.parked = 0;  // they may be complete now
  const uint32_t count = static_cast<uint32_t>(std::popcount(lanes));
  x.cta.live_threads -= count;
  x.cluster.live_threads -= count;
  x.cluster.changed();
  if (x.cta.live_threads != 0) return;
  x.cta.exited = true;
  for (auto& [key, state] : x.cta.family_states) state->cta_exits(x.cta);
  x.tell([&](Observer& o) { o.cta_exited(x.cta); });
}

// R12. Where the paths of a branch meet, the lanes go on together in this interpreter and mostly on
// hardware; PTX promises it only after bar.warp.sync or another .sync instruction of these lanes.
void advise_of_separation(Execution& x) {
  const uint32_t lanes = std::exchange(x.warp.separated, 0);
  const Machine& machine = x.machine;
  x.machine.reports().add(
      {.rule = 12,
       .severity = Severity::kAdvisory,
       .message = fmt::format(
           "'{}' needs a converged warp; lanes {:08x} were separated by a branch before",
           machine.program().entry->statements[x.insn->statement].root, lanes),
       .place = machine.place_of(x.insn->statement),
       .actor = machine.actor_of(x.warp, -1),
       .other =
           fmt::format("'{}' at {}", machine.program().entry->statements[x.warp.separated_by].text,
                       to_string(machine.place_of(x.warp.separated_by))),
       .missing = "bar.warp.sync (__syncwarp) between the two",
       .fix = "reconverge before instructions with .aligned"});
}

// One turn of one warp.
class Turn {
 public:
  Turn(Machine& machine, Cluster& cluster, Warp& warp, uint32_t statements)
      : machine_(machine),
        program_(machine.program()),
        cluster_(cluster),
        warp_(warp),
        left_(statements),
        x_{machine, cluster, *warp.cta, warp, 0, 0, program_.constants.data(), warp.file()} {}

  TurnResult run();

 private:
  enum class Step : uint8_t { kOn, kRegroup, kStopped };  // stopped: the lanes' pc are written
  void run_group();
  Step step(const Insn& insn);
  Outcome execute(const Insn& insn);
  Step finish(const Insn& insn, uint32_t exec, Outcome outcome);
  void split(const Insn& insn, uint32_t exec, Outcome outcome);
  void park(uint32_t exec);
  void block(const Insn& insn, uint32_t exec);
  // One statement done, be it one whose guard is false for all lanes: the warp has gone on.
  void count(uint32_t exec) {
    if (result_ == TurnResult::kNothing) result_ = TurnResult::kRan;
    --left_;
    ++executed_;
    // A call of the compiler's library on processors that may have no such instruction.
    lanes_executed_ += exec == kAllLanes ? kWarpSize : static_cast<uint64_t>(std::popcount(exec));
  }
  void flush();
  [[noreturn]] void add_place(Fault& fault);
  uint32_t last_statement() const {
    return std::min(pc_, static_cast<uint32_t>(program_.insns.size()) - 1);
  }

  Machine& machine_;
  const Program& program_;
  Cluster& cluster_;
  Warp& warp_;
  uint32_t left_;
  Execution x_;
  Group group_;
  uint32_t pc_ = 0;
  uint64_t executed_ = 0, lanes_executed_ = 0;
  TurnResult result_ = TurnResult::kNothing;
};

TurnResult Turn::run() {
  try {
    while (left_ > 0 && warp_.live != 0) {
      if (!choose_group(cluster_, warp_, group_)) {
        if (warp_.parked == 0 || warp_.parked != warp_.live) break;
        pc_ = warp_.pc[std::countr_zero(warp_.live)];
        throw Fault(fmt::format(
            "lanes {:08x} wait at different converging statements, or for lanes that never come "
            "(R12)",
            warp_.live));
      }
      run_group();
    }
  } catch (Fault& fault) {
    flush();
    add_place(fault);
  }
  flush();
  if (machine_.stats().warp_instructions > machine_.options().max_warp_instructions) {
    Fault fault(
        fmt::format("{} warp instructions of kernel '{}' executed{}; the budget is {}",
                    machine_.stats().warp_instructions, program_.entry->name,
                    machine_.waiting_clusters_text(), machine_.options().max_warp_instructions),
        ErrorKind::kBudget);
    add_place(fault);
  }
  return result_;
}

// Until the group meets other lanes, splits, stops or the turn ends.
void Turn::run_group() {
  pc_ = group_.pc;
  const uint32_t end = static_cast<uint32_t>(program_.insns.size());
  Step state = Step::kOn;
  while (left_ > 0 && state == Step::kOn) {
    if (pc_ >= end) throw Fault("control reached the end of the entry without ret");
    state = step(program_.insns[pc_]);
    if (state == Step::kOn && pc_ >= group_.limit) state = Step::kRegroup;
  }
  if (state == Step::kStopped) return;
  set_pc(warp_, group_.lanes, pc_);
  // A turn spent by some lanes while others could go on: those go first next time (a loop that
  // polls memory).
  if (left_ == 0 && group_.lanes != warp_.live) warp_.yielded = group_.lanes;
}

Turn::Step Turn::step(const Insn& insn) {
  uint32_t exec = group_.lanes;
  if (insn.guard.present()) {
    if (warp_.undefined != nullptr) refuse_undefined_guard(x_, insn, exec);
    exec &= x_.predicate(insn.guard, insn.guard_negated);
    if (exec == 0) {
      if (warp_.undefined != nullptr) note_undefined_guard(x_, insn, group_.lanes);
      ++pc_;
      count(0);
      return Step::kOn;
    }
  }
  if (insn.convergence != Convergence::kNone && !has_converged(x_, insn, group_, exec)) {
    park(exec);
    return Step::kStopped;
  }
  x_.mask = exec;
  x_.insn = &insn;
  if (warp_.separated != 0 && insn.convergence == Convergence::kAligned &&
      machine_.options().sanitize)
    advise_of_separation(x_);
  cluster_.async.statement = insn.statement;
  cluster_.async.op = {};
  // A mov that was put off owns what it will write, which may be any register.
  const bool may_be_owned = insn.touches_ownable || !warp_.put_off.empty();
  const bool put_off =
      may_be_owned && !warp_.owned.empty() && !insn.may_touch_owned && put_off_or_refuse(x_, insn);
  if (insn.writes_operand) note_unfenced(x_, insn);
  const Outcome outcome = put_off ? Outcome::kNext : execute(insn);
  if (cluster_.observers.any_of_statements()) {
    flush();
    cluster_.observers.tell_of_statement(
        [&](Observer& o) { o.executed(x_, insn, outcome == Outcome::kBlock); });
  }
  if (outcome == Outcome::kBlock) {
    block(insn, exec);
    return Step::kStopped;
  }
  return finish(insn, exec, outcome);
}

Outcome Turn::execute(const Insn& insn) {
  if (warp_.undefined == nullptr) return insn.execute(x_, insn);
  const Outcome outcome = execute_with_undefined(x_, insn);
  if (insn.guard.present()) note_undefined_guard(x_, insn, group_.lanes);
  if (warp_.undefined->registers.empty()) warp_.undefined.reset();
  return outcome;
}

Turn::Step Turn::finish(const Insn& insn, uint32_t exec, Outcome outcome) {
  count(exec);
  ++machine_.stats().by_statement[insn.statement];
  // Converging statements (barriers, allocations) may have set tickets without ever blocking.
  if (warp_.ticketed != 0 || insn.convergence != Convergence::kNone) zero_tickets(warp_, exec);
  if (insn.convergence == Convergence::kMembers) {
    warp_.separated &= ~exec;
    x_.tell([&](Observer& o) { o.lanes_met(x_, exec); });
  }
  const uint32_t rest = group_.lanes & ~exec;
  // A member mask can narrow a group whose other lanes have not executed the statement yet.
  const bool narrowed = insn.convergence == Convergence::kMembers && rest != 0;
  if (outcome == Outcome::kNext && !narrowed) {
    ++pc_;
    return Step::kOn;
  }
  if (outcome == Outcome::kJump && rest == 0 && x_.jump_target != Execution::kPerLane) {
    pc_ = x_.jump_target;
    return group_.lanes == warp_.live ? Step::kOn : Step::kRegroup;
  }
  split(insn, exec, outcome);
  return Step::kStopped;
}

// The lanes of the group go different ways, or some end, or the warp gives up its turn.
void Turn::split(const Insn& insn, uint32_t exec, Outcome outcome) {
  const uint32_t rest = group_.lanes & ~exec;
  uint32_t waiting = 0;  // lanes that have not executed the statement although their guard is true
  if (insn.convergence == Convergence::kMembers)
    waiting = insn.guard.present() ? rest & x_.predicate(insn.guard, insn.guard_negated) : rest;
  set_pc(warp_, rest & ~waiting, pc_ + 1);
  set_pc(warp_, waiting, pc_);
  if (outcome == Outcome::kJump) {
    warp_.separated |= group_.lanes;
    warp_.separated_by = insn.statement;
    if (x_.jump_target != Execution::kPerLane) set_pc(warp_, exec, x_.jump_target);
    return;
  }
  set_pc(warp_, exec, pc_ + 1);
  if (outcome == Outcome::kExit) exit_lanes(x_, exec);
  if (outcome == Outcome::kYield) {
    warp_.yielded = exec;
    result_ = TurnResult::kYielded;
    left_ = 0;
  }
}

// Lanes whose guard is false pass on; the others wait for the rest of the warp.
void Turn::park(uint32_t exec) {
  set_pc(warp_, group_.lanes, pc_ + 1);
  set_pc(warp_, exec, pc_);
  warp_.parked |= exec;
}

void Turn::block(const Insn& insn, uint32_t exec) {
  const uint32_t rest = group_.lanes & ~exec;
  set_pc(warp_, exec, pc_);
  uint32_t passing = rest;
  if (insn.convergence == Convergence::kMembers && insn.guard.present())
    passing &= ~x_.predicate(insn.guard, insn.guard_negated);
  else if (insn.convergence == Convergence::kMembers)
    passing = 0;
  set_pc(warp_, rest & ~passing, pc_);
  set_pc(warp_, passing, pc_ + 1);
  warp_.blocked |= exec;
  warp_.ticketed |= exec;
  for (uint32_t left = exec; left != 0; left &= left - 1)
    warp_.blocked_at[std::countr_zero(left)] = cluster_.version;
}

void Turn::flush() {
  warp_.executed += executed_;
  Stats& stats = machine_.stats();
  stats.by_warp[warp_.index] += executed_;
  stats.warp_instructions += executed_;
  stats.lane_instructions += lanes_executed_;
  executed_ = lanes_executed_ = 0;
}

void Turn::add_place(Fault& fault) {
  const uint32_t statement = fault.issuer() >= 0 ? static_cast<uint32_t>(fault.issuer())
                                                 : program_.insns[last_statement()].statement;
  Error& error = fault.error();
  if (error.place.ptx_line == 0) error.place = machine_.place_of(statement);
  error.message += fmt::format("; {}: '{}'", machine_.actor_of(warp_, fault.lane()),
                               program_.entry->statements[statement].text);
  if (fault.issuer() < 0) error.message += callers_text(machine_, warp_, fault.lane());
  throw fault;
}

}  // namespace

void Execution::refuse_difference(const char* what, int lane) const {
  fault(fmt::format("{} differs between lanes {} and {}; must be the same in all of them (R12)",
                    what, first_lane(), lane),
        lane);
}

TurnResult Machine::run_warp(Cluster& cluster, Warp& warp, uint32_t statements) {
  return Turn(*this, cluster, warp, statements).run();
}

}  // namespace ptxsim
