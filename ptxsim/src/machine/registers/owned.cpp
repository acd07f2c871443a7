#include "machine/registers/owned.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "machine/execution.hpp"

namespace ptxsim {
namespace {

const Warp::OwnedRange* find_owned(const Warp& warp, const RegisterUse& use) {
  for (const Warp::OwnedRange& owned : warp.owned) {
    if (use.at >= owned.at + owned.bytes || owned.at >= use.at + use.bytes) continue;
    if (owned.reads_allowed && !use.is_write) continue;
    return &owned;
  }
  return nullptr;
}

// True when `owner` is a kind of load that can be completed early, and was.
bool finish_early(Execution& x, const Insn& insn, const Warp::OwnedRange& owned) {
  bool any = false;
  for (const auto& load : x.warp.unfinished) {
    if (load->owner != owned.owner) continue;
    any = true;
    if (!std::exchange(load->done, true)) load->finish();
  }
  if (!any) return false;
  const Program& program = x.program();
  x.machine.reports().add(
      {.rule = 8,
       .severity = Severity::kWarning,
       .message = fmt::format("a register of '{}' is read before its wait by '{}'",
                              program.entry->statements[owned.statement].root,
                              program.entry->statements[insn.statement].text),
       .place = x.machine.place_of(insn.statement),
       .actor = x.machine.actor_of(x.warp, -1),
       .other = fmt::format("'{}' at {}", program.entry->statements[owned.statement].text,
                            to_string(x.machine.place_of(owned.statement))),
       .missing = "tcgen05.wait::ld between the load and the use of its result",
       .fix = "wait first; today's ptxas orders the two by the registers, which the PTX manual "
              "does not promise"});
  release_owned(x, owned.owner);
  return true;
}

}  // namespace

bool put_off_or_refuse(Execution& x, const Insn& insn) {
  const Program& program = x.program();
  const bool is_move = program.traits_of(insn).has(Trait::kPassesOn) && !insn.guard.present();
  const Warp::OwnedRange* source = nullptr;
  for (const RegisterUse& use : program.uses_of(insn)) {
    const Warp::OwnedRange* owned = find_owned(x.warp, use);
    if (owned == nullptr) continue;
    if (!is_move && !use.is_write && finish_early(x, insn, Warp::OwnedRange(*owned)))
      return put_off_or_refuse(x, insn);  // other ranges, now that these are released
    if (!is_move || use.is_write)
      x.fault(fmt::format("a register of the unfinished '{}' is {} before its wait (R8)",
                          program.entry->statements[owned->statement].text,
                          use.is_write ? "written" : "read"));
    source = owned;
  }
  if (source == nullptr) return false;
  const Warp::OwnedRange from = *source;
  x.warp.put_off.push_back({&insn, x.mask, from.owner});
  for (const RegisterUse& use : program.uses_of(insn))
    if (use.is_write)
      x.warp.owned.push_back({use.at, use.bytes, from.owner, false, from.statement});
  return true;
}

void note_unfenced(Execution& x, const Insn& insn) {
  std::vector<uint32_t>& list = x.warp.unfenced;
  for (const RegisterUse& use : x.program().uses_of(insn))
    if (use.is_write && std::find(list.begin(), list.end(), use.at) == list.end())
      list.push_back(use.at);
}

void release_owned(Execution& x, uint64_t owner) {
  std::erase_if(x.warp.owned, [&](const Warp::OwnedRange& range) { return range.owner == owner; });
  std::erase_if(x.warp.unfinished, [&](const auto& load) { return load->owner == owner; });
  const auto mine = std::stable_partition(x.warp.put_off.begin(), x.warp.put_off.end(),
                                          [&](const Warp::PutOff& p) { return p.owner != owner; });
  std::vector<Warp::PutOff> due(mine, x.warp.put_off.end());
  x.warp.put_off.erase(mine, x.warp.put_off.end());
  const uint32_t mask = x.mask;
  for (const Warp::PutOff& p : due) {
    x.mask = p.mask;
    p.insn->execute(x, *p.insn);
  }
  x.mask = mask;
}

}  // namespace ptxsim
