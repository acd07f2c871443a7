#include "fake_cuda/fatbin/select.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace ptxsim::cuda {
namespace {

uint32_t rank_of(const PtxTarget& target) {
  const uint32_t group = target.suffix == 'a' ? 2 : target.suffix == 'f' ? 1 : 0;
  return group * 10000 + target.architecture;
}

void append(std::string& list, const std::string& item) {
  list += list.empty() ? item : ", " + item;
}

}  // namespace

std::optional<PtxTarget> target_of(std::string_view ptx) {
  constexpr std::string_view kDirective = ".target";
  for (size_t begin = 0; begin < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', begin), ptx.size());
    std::string_view line = ptx.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(kDirective)) continue;
    const size_t name = line.find("sm_");
    if (name == std::string_view::npos) return std::nullopt;
    PtxTarget target;
    size_t at = name + 3;
    for (; at < line.size() && std::isdigit(static_cast<unsigned char>(line[at])) != 0 &&
           at < name + 7;
         ++at)
      target.architecture = target.architecture * 10 + static_cast<uint32_t>(line[at] - '0');
    if (at < line.size() && (line[at] == 'a' || line[at] == 'f')) target.suffix = line[at];
    return target;
  }
  return std::nullopt;
}

bool runs_on(const PtxTarget& target, uint32_t device_architecture) {
  if (target.suffix == 'a') return target.architecture == device_architecture;
  if (target.suffix == 'f' && target.architecture / 10 != device_architecture / 10) return false;
  return target.architecture <= device_architecture;
}

Result<Selection> select_ptx(std::span<const FatbinEntry> entries, uint32_t device_architecture) {
  Selection selection;
  std::optional<uint32_t> best;
  for (const FatbinEntry& entry : entries) {
    if (entry.kind == FatbinKind::kElf)
      append(selection.contents, fmt::format("machine code of sm_{}", entry.architecture));
    if (entry.kind != FatbinKind::kPtx) continue;
    Result<std::string> ptx = ptx_of(entry);
    if (!ptx.ok()) return ptx.error();
    const PtxTarget target = target_of(*ptx).value_or(PtxTarget{entry.architecture, 0});
    append(selection.contents,
           fmt::format("PTX of sm_{}{}", target.architecture,
                       target.suffix == 0 ? std::string() : std::string(1, target.suffix)));
    if (!runs_on(target, device_architecture) || (best && rank_of(target) <= *best)) continue;
    best = rank_of(target);
    selection.ptx = std::move(*ptx);
  }
  if (selection.contents.empty()) selection.contents = "nothing";
  return selection;
}

}  // namespace ptxsim::cuda
