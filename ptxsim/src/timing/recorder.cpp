#include "timing/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "timing/recorder_state.hpp"

namespace ptxsim::timing {
namespace {

constexpr double kMacsOfMmaSync = 16 * 8 * 16;
constexpr double kExchangeBytes = 128;  // of shared memory's rate: one of 32 lanes a clk and SM

}  // namespace

Recorder::Recorder(Cluster& cluster, std::shared_ptr<Recording> recording, uint64_t l1_bytes,
                   std::shared_ptr<const StatementCosts> costs)
    : cluster_(cluster),
      recording_(std::move(recording)),
      all_costs_(std::move(costs)),
      costs_(all_costs_->of) {
  out_.index = cluster.index;
  grid_ = work().add_actor("grid", "grid", Sequence::kFree);
  macs_ = cluster.machine.stats().mma_multiply_adds;
  start_ = work().add({.actor = grid_, .what = "start", .delay = Delay::kStart}, {}, {});
  for (const auto& cta : cluster.ctas) {
    add_actors(*cta);
    l1_.emplace_back(l1_bytes);
  }
}

void Recorder::executed(const Execution& x, const Insn& insn, bool blocked) {
  WarpState& w = state(x);
  finish_flights(x);
  if (blocked) return;
  const StatementCost& cost = costs_[insn.statement];
  w.flow.issue(insn, w.loads);
  w.statements += 1;
  w.slots += cost.expansion.slots;
  w.mufu += cost.expansion.functions;
  w.shared_bytes += cost.expansion.exchanges * kExchangeBytes;
  w.doubles += cost.expansion.doubles;
  if (!cost.expansion.is_modelled) out_.unknown_slots += cost.expansion.slots;
  out_.slots += cost.expansion.slots;
  const uint64_t macs = cluster_.machine.stats().mma_multiply_adds;
  w.more = cost.expansion.chain;
  if (macs != macs_ && !asynchronous_macs_) {
    // The machine counts those of all resident clusters.
    const double done = cost.warp_macs * cost.operand_bits / 16;
    w.mma_sync_macs += done;
    out_.is_narrow |= cost.operand_bits == 4;
    w.more.add(Latency::kMmaSync, done / kMacsOfMmaSync);
  }
  macs_ = macs;
  asynchronous_macs_ = false;
  if (!w.shared.empty()) add_shared(insn, w);
  const bool loads = !w.read_sectors.empty();
  if (loads) add_global_read(x, insn, w);
  if (!w.written_sectors.empty()) add_global_write(x, w);
  if (!w.atomics.empty())
    add_atomics(x, insn, w);
  else if (!loads)
    w.flow.completes(insn, w.more);
  if (cluster_.machine.program().traits_of(insn).has(Trait::kJumps) && x.jump_target == insn.target)
    w.flow.jumped(insn, insn.target);
  if (cluster_.machine.program().traits_of(insn).has(Trait::kBarrier)) w.shared_loads.clear();
}

void Recorder::issued(const Execution& x, int, AsyncOp op, AsyncKind kind) {
  Flight flight;
  flight.kind = kind;
  flight.cta = x.cta.rank;
  flight.warp = x.warp.index;
  flight.statement = x.insn->statement;
  flight.macs_before = cluster_.machine.stats().mma_multiply_adds;
  flight.issued = flush(x);
  flight.stage = state(x).stage;
  WarpState& w = state(x);
  if (kind == AsyncKind::kWgmma) flight.ordinal = w.wgmmas++;
  w.loads_in_bulk |= kind == AsyncKind::kTmaLoad;
  w.copies |= kind == AsyncKind::kCpAsync;
  w.multiplies |= kind == AsyncKind::kTcgen05 || kind == AsyncKind::kWgmma;
  w.stores |= kind == AsyncKind::kTmaStore;
  asynchronous_macs_ |= kind == AsyncKind::kTcgen05 || kind == AsyncKind::kWgmma;
  flights_[op.number] = std::move(flight);
  unfinished_.push_back(op.number);
}

// Stores of a box are instructions of a warp (UTMASTG): where several lanes issue the same, as
// CUTLASS's epilogues have it, ptxas makes one of them. The piece of the first.
std::optional<uint32_t> Recorder::same_store(size_t index) {
  const Flight& flight = flights_[unfinished_[index]];
  if (flight.kind != AsyncKind::kTmaStore || index == 0) return std::nullopt;
  const Flight& before = flights_[unfinished_[index - 1]];
  const bool is_same = before.kind == flight.kind && before.address == flight.address &&
                       before.global_bytes == flight.global_bytes;
  return is_same ? before.piece : std::nullopt;
}

void Recorder::finish_flights(const Execution&) {
  for (size_t i = 0; i < unfinished_.size(); ++i) {
    const uint32_t op = unfinished_[i];
    if (flights_[op].kind == AsyncKind::kWgmma)
      join_warpgroup(op);
    else if (const std::optional<uint32_t> piece = same_store(i))
      flights_[op].piece = piece;
    else
      piece_of(op);
  }
  unfinished_.clear();
}

void Recorder::add_actors(const Cta& cta) {
  CtaState c;
  const auto name = [&](const char* what) { return fmt::format("CTA {} {}", cta.rank, what); };
  c.tma = work().add_actor(name("TMA"), "TMA", Sequence::kFree);
  c.global = work().add_actor(name("global memory"), "global memory", Sequence::kFree);
  c.tmem = work().add_actor(name("TMEM loads"), "TMEM loads", Sequence::kFree);
  c.tensor = work().add_actor(name("tensor cores"), "tensor cores", Sequence::kPipelined);
  for (uint32_t w = 0; w < cta.warps.size(); ++w) {
    WarpState& warp = c.warps.emplace_back(cluster_.machine.program());
    warp.actor =
        work().add_actor(fmt::format("CTA {} warp {}", cta.rank, w), "", Sequence::kSerial);
    warp.after.push_back({start_});
    warp.flow.go_on_after(start_);
  }
  ctas_.push_back(std::move(c));
}

// Before the first bulk load.
uint32_t Recorder::setup() {
  if (!setup_)
    setup_ = work().add({.actor = grid_, .what = "setup", .delay = Delay::kSetup}, {}, {});
  return *setup_;
}

// What the warp did since its last piece becomes one. Returns the warp's last piece.
uint32_t Recorder::flush(const Execution& x) {
  WarpState& w = state(x);
  const int32_t last = work().last[w.actor];
  if (w.statements == 0 && w.after.empty() && w.loads.empty() && last >= 0)
    return static_cast<uint32_t>(last);
  const uint32_t scheduler = scheduler_of(x.cta.rank, x.warp.index), sm = x.cta.rank;
  std::vector<Demand> needs{{Server::kIssue, scheduler, w.slots}};
  const auto need = [&](Server server, uint32_t unit, double amount) {
    if (amount > 0) needs.push_back({server, unit, amount});
  };
  need(Server::kMufu, scheduler, w.mufu);
  need(Server::kDouble, scheduler, w.doubles);
  need(Server::kShared, sm, w.shared_bytes);
  need(Server::kMmaSync, sm, w.mma_sync_macs);
  for (const uint32_t load : w.loads) w.after.push_back({load});
  const uint32_t piece = add_piece(
      w, {.what = "statements", .stage = w.stage, .chain = w.flow.issued_last().after}, needs);
  w.statements = w.slots = w.mufu = w.doubles = w.mma_sync_macs = w.shared_bytes = 0;
  w.loads.clear();
  return piece;
}

// The warp's next piece, after what it waits for.
uint32_t Recorder::add_piece(WarpState& w, Piece piece, std::span<const Demand> demands) {
  piece.actor = w.actor;
  const uint32_t number = work().add(piece, demands, w.after);
  w.after.clear();
  w.flow.go_on_after(number);
  return number;
}

void Recorder::wait(const Execution& x, const std::vector<uint32_t>& pieces, Delay delay) {
  flush(x);
  WarpState& w = state(x);
  for (const uint32_t piece : pieces) w.after.push_back({piece, delay});
  add_piece(w, {.what = "wait", .stage = w.stage}, {});
}

void Recorder::cluster_ended() {
  for (CtaState& cta : ctas_) {
    // The kernels that epilogue_tail_us is fitted to have roles; others' stores are ordinary ones.
    const bool is_asynchronous =
        std::any_of(cta.warps.begin(), cta.warps.end(),
                    [](const WarpState& w) { return w.loads_in_bulk || w.multiplies; });
    out_.has_roles |= is_asynchronous;
    for (WarpState& w : cta.warps) {
      const Delay tail = is_asynchronous ? Delay::kEpilogueTail : Delay::kStoreTail;
      if (w.stores) work().add({.actor = w.actor, .what = "last stores", .delay = tail}, {}, {});
      std::string& role = work().actors[w.actor].role;
      for (const auto& [does, name] : {std::pair{w.loads_in_bulk || w.copies, "load"},
                                       {w.multiplies, "mma"},
                                       {w.stores, "epilogue"}})
        if (does) role += (role.empty() ? "" : "+") + std::string(name);
      if (role.empty()) role = "warp";
    }
  }
  out_.written_factor = written_factor();
  recording_->clusters.push_back(std::move(out_));
}

MakeObserver make_recorder(std::shared_ptr<Recording> recording, uint64_t l1_bytes,
                           std::shared_ptr<const StatementCosts> costs) {
  return [recording = std::move(recording), l1_bytes, costs = std::move(costs)](Cluster& cluster) {
    return std::make_unique<Recorder>(cluster, recording, l1_bytes, costs);
  };
}

}  // namespace ptxsim::timing
