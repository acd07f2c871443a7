#include "tools/cli/parse/gpu_table.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "checkpoint/json_text.hpp"
#include "dualgemm_gpus.h"
#include "tools/cli/parse/parse_values.hpp"

namespace dualgemm::cli {
namespace {

using nlohmann::json;

constexpr int64_t kLargestFile = 1 << 20;

// A value in a message: its text, or what it is where that would be long.
std::string shown(const json& value) {
  return value.is_structured() ? value.type_name() : value.dump().substr(0, 40);
}

// The whole number under `key`, lowest .. highest.
Expected<int64_t> whole(const json& object, const char* key, int64_t lowest, int64_t highest,
                        const std::string& origin) {
  const std::string rule =
      "must be a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest);
  const auto found = object.find(key);
  if (found == object.end()) return Status::invalid(origin + ": " + key, "missing", rule);
  const bool fits =
      found->is_number_integer() &&
      (!found->is_number_unsigned() || found->get<uint64_t>() <= static_cast<uint64_t>(highest));
  if (!fits || found->get<int64_t>() < lowest || found->get<int64_t>() > highest)
    return Status::invalid(origin + ": " + key, shown(*found), rule);
  return found->get<int64_t>();
}

Status take_text(const json& object, const char* key, const std::string& origin,
                 std::string& text) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (!found->is_string())
    return Status::invalid(origin + ": " + key, shown(*found), "must be a string");
  text = found->get<std::string>();
  return {};
}

Status take_aliases(const json& object, const std::string& origin,
                    std::vector<std::string>& aliases) {
  const auto found = object.find("aliases");
  if (found == object.end()) return {};
  const auto is_text = [](const json& alias) { return alias.is_string(); };
  if (!found->is_array() || !std::all_of(found->begin(), found->end(), is_text))
    return Status::invalid(origin + ": aliases", shown(*found), "must be a list of strings");
  aliases = found->get<std::vector<std::string>>();
  return {};
}

Status take_bandwidth(const json& object, const std::string& origin, double& gbps) {
  const auto found = object.find("memory_gbps");
  if (found == object.end()) return {};
  if (!found->is_number() || !(found->get<double>() > 0.0))
    return Status::invalid(origin + ": memory_gbps", shown(*found), "must be a number > 0");
  gbps = found->get<double>();
  return {};
}

Expected<GpuDescription> description_of(const json& object, const std::string& origin) {
  if (!object.is_object())
    return Status::invalid(origin, object.type_name(), "must be one JSON object of a GPU");
  GpuDescription gpu;
  gpu.name = origin;
  DUALGEMM_TRY(take_text(object, "name", origin, gpu.name));
  gpu.product = gpu.name;
  DUALGEMM_TRY(take_text(object, "product", origin, gpu.product));
  DUALGEMM_TRY(take_aliases(object, origin, gpu.aliases));
  DUALGEMM_TRY(take_bandwidth(object, origin, gpu.memory_gbps));
  const Expected<int64_t> capability = whole(object, "compute_capability", 10, 999, origin);
  if (!capability) return capability.status();
  const Expected<int64_t> sms = whole(object, "sms", 1, 4096, origin);
  if (!sms) return sms.status();
  gpu.compute_capability = static_cast<int>(*capability);
  gpu.sms = static_cast<int>(*sms);
  constexpr int64_t kMostBytes = int64_t{1} << 50;
  if (object.contains("l2_bytes")) {
    const Expected<int64_t> bytes = whole(object, "l2_bytes", 0, kMostBytes, origin);
    if (!bytes) return bytes.status();
    gpu.l2_bytes = *bytes;
  }
  if (object.contains("memory_bytes")) {
    const Expected<int64_t> bytes = whole(object, "memory_bytes", 0, kMostBytes, origin);
    if (!bytes) return bytes.status();
    gpu.memory_bytes = *bytes;
  }
  return gpu;
}

}  // namespace

const std::vector<GpuDescription>& known_gpus() {
  static const std::vector<GpuDescription> gpus = [] {
    std::vector<GpuDescription> list;
    const json table = json::parse(kGpusJson, nullptr, /*allow_exceptions=*/false);
    for (const json& entry : table.value("gpus", json::array())) {
      Expected<GpuDescription> gpu = description_of(entry, "gpus.json");
      if (gpu) list.push_back(*std::move(gpu));
    }
    return list;
  }();
  return gpus;
}

const GpuDescription* find_gpu(const std::string& name) {
  const std::string wanted = with_underscores(name);
  for (const GpuDescription& gpu : known_gpus()) {
    if (gpu.name == wanted) return &gpu;
    if (std::find(gpu.aliases.begin(), gpu.aliases.end(), wanted) != gpu.aliases.end()) return &gpu;
  }
  return nullptr;
}

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const GpuDescription& gpu : known_gpus()) names.push_back(gpu.name);
  return names;
}

std::vector<std::string> gpu_names_and_aliases() {
  std::vector<std::string> names = gpu_names();
  for (const GpuDescription& gpu : known_gpus())
    names.insert(names.end(), gpu.aliases.begin(), gpu.aliases.end());
  return names;
}

Expected<GpuDescription> parse_gpu(const std::string& text, const std::string& origin) {
  constexpr const char* kRule = "must be one JSON object of a GPU";
  // Deep nesting is refused before trees are built of it, which call themselves for each level.
  if (const Status valid = checkpoint::check_json(text, origin); !valid.ok())
    return Status::invalid(origin, "no JSON: " + valid.observed(), kRule);
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return Status::invalid(origin, "no JSON", kRule);
  return description_of(object, origin);
}

Expected<GpuDescription> read_gpu(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) text.assign(std::istreambuf_iterator<char>(file), {});
  if (!file) {
    return Status::error(StatusCode::kIoError, "--device",
                         "'" + path + "': " + std::strerror(errno),
                         "must be a JSON file that can be read");
  }
  if (static_cast<int64_t>(text.size()) > kLargestFile)
    return Status::invalid(path, std::to_string(text.size()) + " bytes",
                           "is no description of a GPU");
  return parse_gpu(text, path);
}

}  // namespace dualgemm::cli
