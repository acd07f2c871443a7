// Pieces of asynchronous operations: bulk copies, tensor cores, tensor memory.
#include <fmt/format.h>

#include <utility>

#include "timing/recorder_state.hpp"

namespace ptxsim::timing {
namespace {

constexpr uint32_t kWarpgroup = 4;

}  // namespace

uint32_t Recorder::piece_of(uint32_t op) {
  Flight& flight = flights_[op];
  if (flight.piece) return *flight.piece;
  switch (flight.kind) {
    case AsyncKind::kTcgen05:
      return *(flight.piece = add_tcgen05(flight));
    case AsyncKind::kWgmma:
      return ctas_[flight.cta].warpgroups[flight.warp / kWarpgroup].mmas[flight.ordinal].piece;
    case AsyncKind::kTcgen05Ld:
    case AsyncKind::kTcgen05St: {
      const Demand needs[] = {{Server::kTmem, flight.cta, flight.tmem_cells * 4}};
      const After when[] = {{flight.issued}};
      return *(
          flight.piece = work().add(
              {.actor = ctas_[flight.cta].tmem, .what = "TMEM load", .delay = Delay::kTmemLoad},
              needs, when));
    }
    default:
      return *(flight.piece = add_load(flight));
  }
}

uint32_t Recorder::add_load(const Flight& flight) {
  CtaState& cta = ctas_[flight.cta];
  WarpState& w = cta.warps[flight.warp];
  uint32_t issued = flight.issued;
  if (flight.kind == AsyncKind::kTmaLoad || flight.kind == AsyncKind::kTmaStore) {
    const Demand one[] = {{Server::kTma, flight.cta, 1}};
    if (!std::exchange(w.has_read, true)) w.after.push_back({setup()});
    issued = add_piece(w, {.what = "issue copy"}, one);
  }
  std::vector<Demand> needs;
  for (const auto& [owner, bytes] : flight.arrives)
    needs.push_back({Server::kIngest, owner, bytes});
  if (flight.global_bytes > 0) needs.push_back({Server::kL2, 0, flight.global_bytes});
  const bool reads = flight.global_bytes > 0 && !flight.is_write;
  if (reads) needs.push_back({Server::kHbm, 0, flight.global_bytes});
  const bool is_first =
      reads && flight.kind == AsyncKind::kTmaLoad && !std::exchange(cta.has_loaded, true);
  const After when[] = {{issued}};
  const uint32_t piece =
      work().add({.actor = cta.tma,
                  .what = flight.is_write ? "store" : "load",
                  .delay = is_first                             ? Delay::kFirstLoad
                           : flight.kind == AsyncKind::kCpAsync ? Delay::kGlobalLoad
                                                                : Delay::kLoad,
                  .delay_first = true},
                 needs, when);
  if (reads) note_use(flight.buffer, false);
  return piece;
}

// Copies read shared memory; an operation that adds nothing to the multiply-adds and reads nothing
// is a commit.
uint32_t Recorder::add_tcgen05(const Flight& flight) {
  const StatementCost& cost = costs_[flight.statement];
  const uint32_t actor = ctas_[flight.cta].tensor;
  const After when[] = {{flight.issued}};
  const uint64_t macs = cluster_.machine.stats().mma_multiply_adds - flight.macs_before;
  if (macs == 0 && flight.shared_read == 0)
    return work().add(
        {.actor = actor, .what = "commit", .stage = flight.stage, .delay = Delay::kMma}, {}, when);
  if (macs == 0) {
    const Demand bytes[] = {{Server::kShared, flight.cta, flight.shared_read}};
    return work().add({.actor = actor, .what = "copy scales", .stage = flight.stage}, bytes, when);
  }
  out_.is_narrow |= cost.operand_bits == 4;
  const double ctas = cost.is_pair ? 2 : 1;
  const double k = 32 * 8 / cost.operand_bits;
  // D's rows are those of A's operand: 128 to an SM, 64 for the small shapes; both read 128-byte
  // rows in full.
  const double rows = 128;
  const double n = static_cast<double>(macs) / (rows * ctas) / k;
  const bool reads_a = !cost.reuses_a && !cost.a_in_tmem;
  const double rows_of_b = cost.is_sparse ? 2 * n : n;  // of 32 bytes
  const double bytes = cost.is_weight_stationary
                           ? flight.shared_read
                           : shared_bytes_of_mma(reads_a ? rows : 0, rows_of_b, cost.is_pair);
  const Demand needs[] = {
      {Server::kTensor, flight.cta, static_cast<double>(macs) / ctas * cost.operand_bits / 16},
      {Server::kShared, flight.cta, bytes}};
  return work().add({.actor = actor, .what = "mma", .stage = flight.stage}, needs, when);
}

// One piece for the four warps of a warpgroup, made when the last of them has issued it.
void Recorder::join_warpgroup(uint32_t op) {
  const Flight& flight = flights_[op];
  CtaState& cta = ctas_[flight.cta];
  Warpgroup& group = cta.warpgroups[flight.warp / kWarpgroup];
  WarpgroupMma& mma = group.mmas[flight.ordinal];
  mma.issued.push_back({flight.issued});
  if (mma.issued.size() < kWarpgroup) return;
  if (!group.actor)
    group.actor =
        work().add_actor(fmt::format("CTA {} wgmma {}", flight.cta, flight.warp / kWarpgroup),
                         "tensor cores", Sequence::kPipelined);
  const auto macs =
      static_cast<double>(cluster_.machine.stats().mma_multiply_adds - flight.macs_before);
  const StatementCost& cost = costs_[flight.statement];
  const Demand needs[] = {
      {Server::kTensor, flight.cta, macs * cost.operand_bits / 16 * cost.columns_missing},
      {Server::kShared, flight.cta, flight.shared_read}};
  mma.piece = work().add(
      {.actor = *group.actor, .what = "wgmma", .stage = flight.stage, .delay = Delay::kMma}, needs,
      mma.issued);
}

}  // namespace ptxsim::timing
