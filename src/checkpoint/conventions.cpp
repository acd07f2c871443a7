#include "checkpoint/conventions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace dualgemm::checkpoint {
namespace {

// Suffixes: data, block scales, global scale, input scale.
constexpr std::array kRows = {
    ConventionRow{.id = Convention::kPlain,
                  .name = "plain",
                  .module = {".weight"},
                  .parameter = {},
                  .stored = Stored::kValues,
                  .needs_global_scale = false},
    ConventionRow{.id = Convention::kModelOpt,
                  .name = "modelopt",
                  .module = {".weight", ".weight_scale", ".weight_scale_2", ".input_scale"},
                  .parameter = {"", "_weight_scale", "_weight_scale_2", "_input_scale"},
                  .gguf_global_scale = ".scale",
                  .config = ModelConfig::kModelOpt},
    ConventionRow{.id = Convention::kCompressedTensors,
                  .name = "compressed_tensors",
                  .module = {".weight_packed", ".weight_scale", ".weight_global_scale",
                             ".input_global_scale"},
                  .parameter = {},
                  .scalars = ScalarRule::kDivisor,
                  .scalar_is_vector = true,
                  .stands_alone = true,
                  .config = ModelConfig::kCompressedTensors},
    ConventionRow{.id = Convention::kGgml,
                  .name = "ggml",
                  .module = {".weight", nullptr, ".weight_scale_2", ".input_scale"},
                  .parameter = {},
                  .stored = Stored::kGgmlBlocks,
                  .needs_global_scale = false},
    ConventionRow{
        .id = Convention::kTorchao,
        .name = "torchao",
        .module = {"._weight_qdata", "._weight_scale", "._weight_per_tensor_scale",
                   "._weight_act_per_tensor_scale"},
        .parameter = {"_qdata", "_scale", "_per_tensor_scale", "_act_per_tensor_scale", true},
        .needs_global_scale = false,
        .can_write = false,
        .described_in_metadata = true},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].id) != i) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const ConventionRow> conventions() noexcept { return kRows; }

const ConventionRow& row_of(Convention convention) noexcept {
  return kRows[static_cast<size_t>(convention)];
}

const char* name_of(Convention convention) noexcept { return row_of(convention).name; }

Expected<Convention> parse_convention(const std::string& name) {
  std::vector<const char*> names;
  for (const ConventionRow& row : kRows) {
    if (name == row.name) return row.id;
    names.push_back(row.name);
  }
  return Status::invalid("convention", fmt::format("'{}'", name),
                         fmt::format("must be one of {}", fmt::join(names, ", ")));
}

bool is_target(const ConventionRow& row) noexcept { return row.can_write && is_nvfp4(row); }

Status check_target(Convention convention, StatusCode code) {
  if (is_target(row_of(convention))) return {};
  return Status::error(code, "convention", name_of(convention), "must be " + names_of(is_target));
}

std::string names_of(bool (*which)(const ConventionRow&)) {
  std::vector<const char*> names;
  for (const ConventionRow& row : kRows) {
    if (which(row)) names.push_back(row.name);
  }
  if (names.size() < 2) return names.empty() ? "" : names.front();
  const char* const last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

bool has_own_data(const ConventionRow& row) noexcept {
  return std::count_if(kRows.begin(), kRows.end(), [&](const ConventionRow& other) {
           return std::string_view(other.module.data) == row.module.data;
         }) == 1;
}

}  // namespace dualgemm::checkpoint
