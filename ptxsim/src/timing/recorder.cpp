#include "timing/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "timing/recorder_state.hpp"

namespace ptxsim::timing {
namespace {

constexpr uint64_t kSectorBytes = 32;  // what L2 delivers at least

// Sorts them; each counts once.
double bytes_of(std::vector<uint64_t>& sectors) {
  std::sort(sectors.begin(), sectors.end());
  const auto end = std::unique(sectors.begin(), sectors.end());
  return static_cast<double>(end - sectors.begin()) * kSectorBytes;
}

}  // namespace

Recorder::Recorder(Cluster& cluster, std::shared_ptr<Recording> recording)
    : cluster_(cluster),
      recording_(std::move(recording)),
      costs_(costs_of(cluster.machine.program())) {
  out_.index = cluster.index;
  const uint32_t grid = work().add_actor("grid", "grid", Sequence::kSerial);
  setup_ = work().add({.actor = grid, .what = "setup", .delay = Delay::kSetup}, {}, {});
  for (const auto& cta : cluster.ctas) add_actors(*cta);
}

void Recorder::executed(const Execution& x, const Insn& insn, bool blocked) {
  WarpState& w = state(x);
  finish_flights(x);
  if (blocked) return;
  if (!w.loaded.empty()) wait_for_registers(x, insn, w);
  w.statements += 1;
  w.mufu += costs_[insn.statement].is_mufu ? 1 : 0;
  const uint64_t macs = cluster_.machine.stats().mma_multiply_adds;
  if (macs != macs_ && !asynchronous_macs_)
    w.macs += static_cast<double>(macs - macs_) * costs_[insn.statement].operand_bits / 16;
  macs_ = macs;
  asynchronous_macs_ = false;
  if (!w.read_sectors.empty()) add_global_read(x, insn, w);
  if (!w.written_sectors.empty()) add_global_write(x, w);
}

void Recorder::global_access(const Execution& x, int, const MemoryAt& at, uint32_t bytes,
                             AccessKind kind) {
  if (at.space != Space::kGlobal) return;
  WarpState& w = state(x);
  std::vector<uint64_t>& sectors = kind == AccessKind::kWrite ? w.written_sectors : w.read_sectors;
  for (uint64_t s = at.offset / kSectorBytes; s <= (at.offset + bytes - 1) / kSectorBytes; ++s)
    sectors.push_back(s);
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
  w.loads |= kind == AsyncKind::kTmaLoad || kind == AsyncKind::kCpAsync;
  w.multiplies |= kind == AsyncKind::kTcgen05 || kind == AsyncKind::kWgmma;
  w.stores |= kind == AsyncKind::kTmaStore;
  asynchronous_macs_ |= kind == AsyncKind::kTcgen05 || kind == AsyncKind::kWgmma;
  flights_[op.number] = std::move(flight);
  unfinished_.push_back(op.number);
}

void Recorder::finish_flights(const Execution&) {
  for (const uint32_t op : unfinished_) {
    if (flights_[op].kind == AsyncKind::kWgmma)
      join_warpgroup(op);
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
  c.warps.resize(cta.warps.size());
  for (uint32_t w = 0; w < c.warps.size(); ++w)
    c.warps[w].actor =
        work().add_actor(fmt::format("CTA {} warp {}", cta.rank, w), "", Sequence::kSerial);
  ctas_.push_back(std::move(c));
}

// What the warp did since its last piece becomes one. Returns the warp's last piece.
uint32_t Recorder::flush(const Execution& x) {
  WarpState& w = state(x);
  const int32_t last = work().last[w.actor];
  if (w.statements == 0 && w.after.empty() && last >= 0) return static_cast<uint32_t>(last);
  const uint32_t scheduler = scheduler_of(x.cta.rank, x.warp.index);
  const Demand needs[] = {{Server::kIssue, scheduler, w.statements},
                          {Server::kTensor, x.cta.rank, w.macs}};
  uint32_t piece = work().add(
      {.actor = w.actor, .what = "statements", .stage = w.stage, .statements = w.statements},
      {needs, w.macs > 0 ? size_t{2} : size_t{1}}, w.after);
  if (w.mufu > 0) {
    const Demand functions[] = {{Server::kMufu, scheduler, w.mufu}};
    piece = work().add({.actor = w.actor, .what = "functions"}, functions, {});
  }
  w.statements = w.mufu = w.macs = 0;
  w.after.clear();
  return piece;
}

void Recorder::wait(const Execution& x, const std::vector<uint32_t>& pieces, Delay delay) {
  flush(x);
  WarpState& w = state(x);
  for (const uint32_t piece : pieces) w.after.push_back({piece, delay});
}

// A load's result is waited for by the statement that uses its register.
void Recorder::wait_for_registers(const Execution& x, const Insn& insn, WarpState& w) {
  for (const RegisterUse& use : cluster_.machine.program().uses_of(insn)) {
    for (size_t i = 0; i < w.loaded.size();) {
      const LoadedRegister r = w.loaded[i];
      if (use.at < r.at + r.bytes && r.at < use.at + use.bytes) {
        wait(x, {r.piece}, Delay::kNone);
        std::erase_if(w.loaded,
                      [&](const LoadedRegister& other) { return other.piece == r.piece; });
      } else {
        ++i;
      }
    }
  }
}

void Recorder::note_read(uint64_t buffer) {
  out_.reads.push_back({static_cast<uint32_t>(work().demands.size() - 1), buffer});
}

void Recorder::add_global_read(const Execution& x, const Insn& insn, WarpState& w) {
  const GlobalBuffer* buffer =
      x.machine.global().find(w.read_sectors.front() * kSectorBytes + kSectorBytes - 1);
  const double bytes = bytes_of(w.read_sectors);
  w.read_sectors.clear();
  std::vector<After> when{{flush(x)}};
  if (!std::exchange(w.has_read, true)) when.push_back({setup_});
  const Demand needs[] = {
      {Server::kIngest, x.cta.rank, bytes}, {Server::kL2, 0, bytes}, {Server::kHbm, 0, bytes}};
  const uint32_t piece = work().add({.actor = ctas_[x.cta.rank].global,
                                     .what = "global load",
                                     .delay = Delay::kGlobalLoad,
                                     .delay_first = true},
                                    needs, when);
  note_read(buffer == nullptr ? 0 : buffer->address);
  for (const RegisterUse& use : cluster_.machine.program().uses_of(insn))
    if (use.is_write) w.loaded.push_back({use.at, use.bytes, piece});
}

void Recorder::add_global_write(const Execution& x, WarpState& w) {
  const double bytes = bytes_of(w.written_sectors);
  w.written_sectors.clear();
  w.stores = true;
  const After when[] = {{flush(x)}};
  const Demand needs[] = {{Server::kL2, 0, bytes}};
  work().add({.actor = ctas_[x.cta.rank].global, .what = "global store"}, needs, when);
}

void Recorder::cluster_ended() {
  for (CtaState& cta : ctas_) {
    for (WarpState& w : cta.warps) {
      if (w.stores)
        work().add({.actor = w.actor, .what = "last stores", .delay = Delay::kEpilogueTail}, {},
                   {});
      std::string& role = work().actors[w.actor].role;
      for (const auto& [does, name] :
           {std::pair{w.loads, "load"}, {w.multiplies, "mma"}, {w.stores, "epilogue"}})
        if (does) role += (role.empty() ? "" : "+") + std::string(name);
      if (role.empty()) role = "warp";
    }
  }
  recording_->clusters.push_back(std::move(out_));
}

MakeObserver make_recorder(std::shared_ptr<Recording> recording) {
  return [recording = std::move(recording)](Cluster& cluster) {
    return std::make_unique<Recorder>(cluster, recording);
  };
}

void count_memory_once(Recording& recording, const GlobalMemory& memory, double clusters) {
  std::map<uint64_t, double> read;
  for (const RecordedCluster& cluster : recording.clusters)
    for (const BufferRead& r : cluster.reads)
      read[r.buffer] += cluster.work.demands[r.demand].amount;
  const double scale = clusters / static_cast<double>(recording.clusters.size());
  std::map<uint64_t, double> part;
  for (const GlobalBuffer& buffer : memory.buffers()) {
    const auto found = read.find(buffer.address);
    if (found != read.end())
      part[buffer.address] =
          std::min(1.0, static_cast<double>(buffer.data.size()) / (found->second * scale));
  }
  for (RecordedCluster& cluster : recording.clusters)
    for (const BufferRead& r : cluster.reads) {
      const auto found = part.find(r.buffer);
      if (found != part.end()) cluster.work.demands[r.demand].amount *= found->second;
    }
}

}  // namespace ptxsim::timing
