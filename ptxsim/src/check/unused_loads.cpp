// Loads that race and whose results no statement uses: the last prefetch of a pipeline, which reads
// what is no longer there, by a load or by a copy into shared memory that no thread reads. They are
// warnings until a statement uses the result. A statement other than `mov` uses what it reads;
// `mov` passes it on.
#include <algorithm>
#include <utility>

#include "check/state.hpp"
#include "machine/machine.hpp"

namespace ptxsim {

void Sanitizer::State::follow_load(const Execution& x) {
  if (may_stay_unused.empty() || open_followed != kNobody || !may_stay_unused[x.insn->statement])
    return;
  open_followed = static_cast<uint32_t>(grid->followed.size());
  grid->followed.emplace_back();
}

void Sanitizer::State::note_followed(const Execution& x, const Insn& insn) {
  if (may_stay_unused.empty()) return;
  std::vector<FollowedResults>& list = followed_results[warp_of(x)];
  const std::span<const RegisterUse> uses = x.program().uses_of(insn);
  const bool is_move = x.program().traits_of(insn).has(Trait::kPassesOn) && !insn.guard.present();
  std::erase_if(list, [&](FollowedResults& results) {
    const auto holds = [&](const RegisterUse& use) {
      return std::ranges::find(results.registers, use.at) != results.registers.end();
    };
    const uint32_t lanes = results.lanes & x.mask;
    const bool reads = std::ranges::any_of(
        uses, [&](const RegisterUse& use) { return !use.is_write && holds(use); });
    if (reads && !is_move && lanes != 0) {
      FollowedLoad& load = grid->followed[results.load];
      load.used |= lanes;
      std::erase_if(load.errors, [&](Deferred& error) {
        if ((error.lanes & lanes) == 0) return false;
        reports.add(std::move(error.report));
        return true;
      });
    }
    const bool is_whole = (results.lanes & ~x.mask) == 0;
    for (const RegisterUse& use : uses)
      if (use.is_write && is_whole) std::erase(results.registers, use.at);
    for (const RegisterUse& use : uses)
      if (use.is_write && reads && is_move && lanes != 0) results.registers.push_back(use.at);
    return results.registers.empty() ||
           (grid->followed[results.load].used & results.lanes) == results.lanes;
  });
  const uint32_t load = std::exchange(open_followed, kNobody);
  if (load == kNobody) return;
  FollowedResults results{load, x.mask, {}};
  for (const RegisterUse& use : uses)
    if (use.is_write) results.registers.push_back(use.at);
  list.push_back(std::move(results));
}

std::vector<Deferred>* Sanitizer::State::unused_load(uint32_t load, uint32_t lanes) {
  if (load == kNobody || (grid->followed[load].used & lanes) != 0) return nullptr;
  return &grid->followed[load].errors;
}

std::vector<Deferred>* Sanitizer::State::unused_copy(uint32_t of_cluster, uint32_t record) {
  Record& copy = (*grid->records.at(of_cluster))[record];
  const bool is_into_shared = copy.kind == AsyncKind::kTmaLoad || copy.kind == AsyncKind::kCpAsync;
  if (!is_into_shared || copy.is_read) return nullptr;
  if (copy.errors == nullptr) copy.errors = std::make_shared<std::vector<Deferred>>();
  return copy.errors.get();
}

void Sanitizer::State::defer(std::vector<Deferred>& list, uint32_t lanes, Report report) {
  for (Deferred& known : list)
    if (known.report.rule == report.rule && known.report.statement == report.statement &&
        known.report.other_statement == report.other_statement) {
      known.lanes |= lanes;
      return;
    }
  list.push_back({lanes, std::move(report)});
}

void Sanitizer::State::note_copy_read(Record& record) {
  record.is_read = true;
  if (record.errors == nullptr) return;
  for (Deferred& error : *record.errors) reports.add(std::move(error.report));
  record.errors.reset();
}

}  // namespace ptxsim
