#include "case/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "case/draft_parameters.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kExampleBlock = 128;  // threads
constexpr uint64_t kMostThreads = 1024;

DraftJson extents(std::array<uint32_t, 3> sizes) {
  size_t count = 3;
  while (count > 1 && sizes[count - 1] == 1) --count;
  return DraftJson(
      std::vector<uint32_t>(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(count)));
}

// PTX ISA, "Performance-Tuning Directives": .maxntid bounds the product of the extents.
std::array<uint32_t, 3> block_of(const Entry& entry, std::string& todo) {
  if (entry.reqntid[0] != 0) return entry.reqntid;
  uint64_t threads = 1;
  for (uint32_t extent : entry.maxntid) threads *= std::min<uint64_t>(extent, kMostThreads + 1);
  const bool is_launchable = threads > 0 && threads <= kMostThreads && entry.maxntid[2] <= 64;
  if (is_launchable) {
    todo += "; block is what .maxntid allows";
    return entry.maxntid;
  }
  todo += fmt::format("; block: the entry says nothing, {} threads are an example", kExampleBlock);
  return {kExampleBlock, 1, 1};
}

// Bytes of shared memory that one CTA may have (CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability").
uint64_t most_shared(const std::string& target) {
  constexpr uint64_t kKib = 1024;
  if (target == "sm_80" || target == "sm_87") return 163 * kKib;
  const bool small =
      target == "sm_86" || target == "sm_88" || target == "sm_89" || target.starts_with("sm_12");
  return (small ? 99 : 227) * kKib;
}

// What the static variables leave of it to the dynamic array; nothing without such an array.
uint64_t dynamic_shared(const Module& module, const Entry& entry) {
  bool is_dynamic = false;
  uint64_t used = 0, alignment = 16;
  for (const Variable& v : entry.variables) {
    if (v.space != Space::kShared) continue;
    const uint64_t step = std::max<uint32_t>(v.alignment, 1);
    is_dynamic |= v.is_extern;
    if (v.is_extern)
      alignment = std::max(alignment, step);
    else
      used = (used + step - 1) / step * step + v.bytes;
  }
  // Shared memory begins behind the first KiB, which the strictest alignment may skip.
  used = (used + alignment - 1) / alignment * alignment + (alignment > 1024 ? alignment - 1024 : 0);
  const uint64_t most = most_shared(module.target);
  return is_dynamic && used < most ? most - used : 0;
}

std::string lines_of(const DraftJson& list) {
  std::string text;
  for (const DraftJson& item : list) text += (text.empty() ? "\n  " : ",\n  ") + item.dump();
  return "[" + text + "]";
}

uint64_t count_todos(const std::string& text) {
  uint64_t count = 0;
  for (size_t at = text.find("\"todo"); at != std::string::npos; at = text.find("\"todo", at + 1))
    ++count;
  return count;
}

}  // namespace

CaseDraft draft_case(const Module& module, const Entry& entry) {
  std::string todo = "todo: grid, one CTA or cluster for now";
  const bool has_cluster = entry.reqnctapercluster[0] != 0;
  const std::array<uint32_t, 3> one{1, 1, 1};
  const DraftJson block = extents(block_of(entry, todo));
  const DraftJson cluster = extents(has_cluster ? entry.reqnctapercluster : one);
  const uint64_t dynamic = dynamic_shared(module, entry);
  if (dynamic > 0) todo += "; dynamic_shared_bytes: the most that the target has";
  const DraftParameters parameters = draft_parameters(entry);

  std::string json = "{\"comment\": " + DraftJson(todo).dump() + ",\n";
  json += " \"entry\": " + DraftJson(entry.name).dump() + ",\n";
  json += " \"grid\": " + cluster.dump() + ", \"block\": " + block.dump();
  if (has_cluster) json += ", \"cluster\": " + cluster.dump();
  if (dynamic > 0) json += fmt::format(", \"dynamic_shared_bytes\": {}", dynamic);
  json += ",\n \"buffers\": " + lines_of(parameters.buffers);
  json += ",\n \"params\": " + lines_of(parameters.params) + "}\n";
  return {json, entry.num_params, parameters.buffers.size(), count_todos(json)};
}

}  // namespace ptxsim
