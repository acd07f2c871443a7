#include "tools/cli/commands/model_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "checkpoint/config_object.hpp"
#include "checkpoint/mapped_file.hpp"
#include "dualgemm/dualgemm.hpp"
#include "tools/cli/parse/gpu_table.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {
namespace {

using checkpoint::ConfigObject;
using checkpoint::LinearFormat;
using checkpoint::LinearLayer;
using checkpoint::LinearScheme;

constexpr size_t kMostNames = 20;

std::string refusal_of(checkpoint::LayerKind kind, const LinearScheme& scheme) {
  const bool is_fp8 = scheme.format == LinearFormat::kFp8 || scheme.format == LinearFormat::kMxfp8;
  if (scheme.format == LinearFormat::kFloat || scheme.format == LinearFormat::kNvfp4 ||
      scheme.format == LinearFormat::kMxfp4)
    return {};
  // Experts' matrices are multiplied in one grouped product, which torch has not for FP8.
  if (is_fp8 && kind != checkpoint::LayerKind::kExperts) return {};
  return "load() does not read " + text_of(scheme);
}

void count_formats(const std::vector<LinearLayer>& layers, ModelReport& report) {
  std::map<std::tuple<checkpoint::LayerKind, std::string, checkpoint::ActivationScheme>,
           FormatCount>
      counts;
  for (const LinearLayer& layer : layers) {
    FormatCount& count = counts[{layer.kind, text_of(layer.scheme), layer.scheme.activations}];
    count.kind = layer.kind;
    count.scheme = layer.scheme;
    ++count.layers;
    count.matrices += std::max<int64_t>(1, layer.experts);
    count.bytes += layer.bytes;
    count.refusal = refusal_of(layer.kind, layer.scheme);
  }
  for (auto& [key, count] : counts) report.formats.push_back(std::move(count));
}

// At most kMostNames layers of each kind of contradiction.
void note_contradictions(const std::vector<LinearLayer>& layers, ModelReport& report) {
  std::map<std::string, std::vector<std::string>> kinds;
  for (const LinearLayer& layer : layers) {
    if (layer.contradiction.empty()) continue;
    kinds[fmt::format("{}; the tensors, which count, are {}", layer.contradiction,
                      text_of(layer.scheme))]
        .push_back(layer.module);
  }
  for (const auto& [kind, modules] : kinds) {
    const size_t named = std::min<size_t>(modules.size(), 3);
    const std::vector<std::string> first(modules.begin(),
                                         modules.begin() + static_cast<std::ptrdiff_t>(named));
    report.notes.push_back(fmt::format(
        "{} of {} layers: {}: {}{}", modules.size(), layers.size(), kind, fmt::join(first, ", "),
        modules.size() > named ? fmt::format(" and {} more", modules.size() - named) : ""));
  }
  if (report.notes.size() > kMostNames) {
    const size_t more = report.notes.size() - kMostNames + 1;
    report.notes.resize(kMostNames - 1);
    report.notes.push_back(fmt::format("and {} more kinds of disagreement", more));
  }
}

// "model.layers.7.mlp.up_proj.weight" gives "model.layers." and 7: the first number that follows
// ".layers.".
std::optional<std::pair<std::string, int64_t>> layer_number(const std::string& name) {
  constexpr std::string_view kPart = "layers.";
  const size_t at = name.find(kPart);
  if (at == name.npos || (at > 0 && name[at - 1] != '.')) return std::nullopt;
  const size_t begin = at + kPart.size();
  int64_t number = 0;
  size_t end = begin;
  for (; end < name.size() && name[end] >= '0' && name[end] <= '9' && end - begin < 9; ++end)
    number = number * 10 + (name[end] - '0');
  if (end == begin || end >= name.size() || name[end] != '.') return std::nullopt;
  return std::pair(name.substr(0, begin), number);
}

// Every layer that config.json counts has tensors. Towers of other models (vision, draft) have
// other names, and none is a defect of its own.
Status check_layer_count(const checkpoint::TensorFile& file, const ConfigObject& config,
                         ModelReport& report) {
  int64_t wanted = 0;
  DUALGEMM_TRY(config.integer("num_hidden_layers", wanted));
  if (wanted == 0) {
    ConfigObject language;
    DUALGEMM_TRY(config.object("text_config", language));
    if (language.exists()) DUALGEMM_TRY(language.integer("num_hidden_layers", wanted));
  }
  std::map<std::string, std::set<int64_t>> found;
  for (const auto& [name, tensor] : file.tensors()) {
    if (const auto number = layer_number(name)) found[number->first].insert(number->second);
  }
  if (wanted <= 0 || wanted > 100'000) return {};
  for (const char* prefix : {"model.layers.", "model.language_model.layers.",
                             "language_model.model.layers.", "layers."}) {
    const auto layers = found.find(prefix);
    if (layers == found.end()) continue;
    std::vector<int64_t> missing;
    for (int64_t i = 0; i < wanted; ++i) {
      if (layers->second.count(i) == 0) missing.push_back(i);
    }
    if (missing.empty()) return {};
    report.errors.push_back(fmt::format(
        "config.json says {} layers; {}{} has no tensor{}", wanted, prefix, missing.front(),
        missing.size() == 1 ? "" : fmt::format(", nor have {} more", missing.size() - 1)));
    return {};
  }
  return {};
}

// How many experts a token goes through; what config.json does not say stays 0.
void read_experts(const ConfigObject& config, WeightsOfAToken& weights) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    if (weights.experts == 0) (void)config.integer(key, weights.experts).ok();
  }
  for (const char* key : {"num_experts_per_tok", "num_experts_per_token", "top_k_experts"}) {
    if (weights.experts_of_a_token == 0) (void)config.integer(key, weights.experts_of_a_token).ok();
  }
}

std::string machine_text(const ModelReport& report) {
  std::string name = device_caps().name;
  int64_t memory =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  if (const Expected<DeviceCaps> gpu = device_caps(DeviceKind::kCuda)) {
    name = gpu->name;
    memory = 0;
    for (const GpuDescription& known : known_gpus()) {
      if (known.product == gpu->name) memory = known.memory_bytes;
    }
  }
  std::map<checkpoint::LayerKind, int64_t> kinds;
  int64_t linear = 0;
  for (const FormatCount& count : report.formats) {
    kinds[count.kind] += count.bytes;
    linear += count.bytes;
  }
  std::string parts;
  for (const auto& [kind, bytes] : kinds)
    parts += fmt::format("{} {}, ", name_of(kind), format_bytes(bytes));
  const std::string verdict = memory <= 0 ? "the memory of this device is not known"
                              : report.bytes <= memory
                                  ? fmt::format("fits in its {}", format_bytes(memory))
                                  : fmt::format("does not fit in its {}", format_bytes(memory));
  WeightsOfAToken weights = report.of_a_token;
  weights.expert_bytes = kinds[checkpoint::LayerKind::kExperts];
  weights.dense_bytes = linear - weights.expert_bytes;
  return fmt::format("on this machine, {}: {} ({}not linear {}), which {}; tokens a second: {}",
                     name, format_bytes(report.bytes), parts, format_bytes(report.bytes - linear),
                     verdict, tokens_a_second(name, weights));
}

Status read_config(const checkpoint::TensorFile& file, const std::string& folder,
                   ModelReport& report) {
  const auto mapped = checkpoint::MappedFile::open(folder + "/config.json");
  if (!mapped) return mapped.status();
  const std::span<const std::byte> bytes = (*mapped)->bytes();
  const Expected<ConfigObject> config = ConfigObject::parse(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, folder + "/config.json");
  if (!config) return config.status();
  read_experts(*config, report.of_a_token);
  ConfigObject language;
  DUALGEMM_TRY(config->object("text_config", language));
  if (language.exists()) read_experts(language, report.of_a_token);
  return check_layer_count(file, *config, report);
}

}  // namespace

std::optional<ModelReport> report_model(const checkpoint::TensorFile& file) {
  const std::string folder = checkpoint::folder_of_model(file);
  if (folder.empty() || access((folder + "/config.json").c_str(), F_OK) != 0) return std::nullopt;
  ModelReport report;
  if (const Status status = read_config(file, folder, report); !status.ok())
    report.errors.push_back(status.message());
  const Expected<checkpoint::ModelQuantization> quantization =
      checkpoint::ModelQuantization::read(folder);
  if (!quantization) report.errors.push_back(quantization.status().message());
  const checkpoint::ModelQuantization none;
  const checkpoint::ModelQuantization& said = quantization ? *quantization : none;
  report.quantization = said.method();
  if (!said.algorithm().empty()) report.quantization += ", " + said.algorithm();
  report.notes = said.notes();
  const Expected<std::vector<LinearLayer>> listed = checkpoint::list_linear_layers(file, said);
  if (!listed) report.errors.push_back(listed.status().message());
  const std::vector<LinearLayer> layers = listed ? *listed : std::vector<LinearLayer>();
  for (const auto& [name, tensor] : file.tensors())
    report.bytes += static_cast<int64_t>(tensor.data.size());
  count_formats(layers, report);
  note_contradictions(layers, report);
  for (const FormatCount& count : report.formats) {
    if (count.refusal.empty()) continue;
    report.errors.push_back(
        fmt::format("{} {} layers: {}", count.layers, name_of(count.kind), count.refusal));
  }
  report.machine = machine_text(report);
  return report;
}

void print_model(const ModelReport& report) {
  print(fmt::format("quantisation: {}\n",
                    report.quantization.empty() ? "no config speaks of one" : report.quantization));
  Table table({{"layers", Align::kLeft},
               {"format", Align::kLeft},
               {"activations", Align::kLeft},
               {"count"},
               {"matrices"},
               {"bytes"}},
              2);
  for (const FormatCount& count : report.formats) {
    table.add_row({name_of(count.kind), text_of(count.scheme), name_of(count.scheme.activations),
                   std::to_string(count.layers), std::to_string(count.matrices),
                   format_bytes(count.bytes)});
  }
  if (!report.formats.empty()) print_styled(table.text());
  print(report.machine + "\n");
  for (const std::string& note : report.notes) talk(note);
  for (const std::string& error : report.errors) talk(error);
}

Json model_json(const ModelReport& report) {
  Json json = {{"quantization", report.quantization},
               {"notes", report.notes},
               {"errors", report.errors},
               {"bytes", report.bytes},
               {"machine", report.machine},
               {"formats", Json::array()}};
  for (const FormatCount& count : report.formats) {
    Json entry = {{"layers", name_of(count.kind)},
                  {"format", name_of(count.scheme.format)},
                  {"granularity", name_of(count.scheme.granularity)},
                  {"activations", name_of(count.scheme.activations)},
                  {"count", count.layers},
                  {"matrices", count.matrices},
                  {"bytes", count.bytes}};
    if (!count.scheme.description.empty()) entry["description"] = count.scheme.description;
    if (count.scheme.format == LinearFormat::kFp8 && count.scheme.rows > 0)
      entry["block"] = {count.scheme.rows, count.scheme.cols};
    if (!count.refusal.empty()) entry["refusal"] = count.refusal;
    json["formats"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace dualgemm::cli
