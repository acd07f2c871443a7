#include <fmt/format.h>

#include "dualgemm/formats.hpp"
#include "tools/checkpoint/checkpoint.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/json.hpp"
#include "tools/cli/layer_source.hpp"
#include "tools/cli/report.hpp"

namespace dualgemm::cli {
namespace {

struct LayerFindings {
  std::string prefix;
  std::string error;    // what is wrong with it; empty = nothing
  std::string refusal;  // why `run` cannot use it; empty = it can
  std::string kind;     // convention, "stacked", number of experts
  DataType type = DataType::kF32;
  int64_t n = 0, k = 0;
  ScaleReport gate, up;

  bool has_scales() const { return error.empty() && type == DataType::kE2M1; }
  bool is_strict() const { return gate.nan + gate.negative + up.nan + up.negative == 0; }
};

Status inspect(const checkpoint::MlpLayer& layer, const checkpoint::LayerOperand& operand,
               ScaleReport& report) {
  const Expected<ScaleReport> found =
      inspect_scales(operand.scales.data(), layer.scale_layout, layer.n, layer.k / kSfVec);
  if (!found) return found.status();
  report = *found;
  return {};
}

void add_up(ScaleReport& sum, const ScaleReport& one) {
  if (sum.first_bad_row < 0) {
    sum.first_bad_row = one.first_bad_row;
    sum.first_bad_col = one.first_bad_col;
  }
  sum.nan += one.nan;
  sum.negative += one.negative;
  sum.zero += one.zero;
  sum.subnormal += one.subnormal;
}

// One layer, or one expert of it.
Status read_one(const checkpoint::TensorFile& file, checkpoint::LayerOptions options,
                LayerFindings& findings) {
  Expected<checkpoint::MlpLayer> layer = checkpoint::load_mlp_layer(file, findings.prefix, options);
  if (!layer) {
    // Differing input scales are legal in a file.
    options.max_input_scale = true;
    Expected<checkpoint::MlpLayer> with_max =
        checkpoint::load_mlp_layer(file, findings.prefix, options);
    if (!with_max) return layer.status();
    findings.refusal = "only with --max-input-scale: " + layer.status().message();
    layer = std::move(with_max);
  }
  findings.kind =
      std::string(checkpoint::name_of(layer->convention)) + (layer->stacked ? ", stacked" : "");
  findings.type = layer->type;
  findings.n = layer->n;
  findings.k = layer->k;
  if (const Status status = check_runnable(file, *layer); !status.ok())
    findings.refusal = status.message();
  if (layer->type != DataType::kE2M1) return {};
  ScaleReport gate, up;
  DUALGEMM_TRY(inspect(*layer, layer->gate, gate));
  DUALGEMM_TRY(inspect(*layer, layer->up, up));
  add_up(findings.gate, gate);
  add_up(findings.up, up);
  return {};
}

Status read_layer(const checkpoint::TensorFile& file, int64_t experts, LayerFindings& findings) {
  checkpoint::LayerOptions options;
  if (experts == 0) return read_one(file, options, findings);
  for (int64_t expert = 0; expert < experts; ++expert) {
    options.expert = expert;
    DUALGEMM_TRY(read_one(file, options, findings));
  }
  findings.kind += fmt::format(", {} experts", experts);
  return {};
}

std::string scale_cell(const LayerFindings& layer, int64_t ScaleReport::*count) {
  return layer.has_scales() ? fmt::format("{} / {}", layer.gate.*count, layer.up.*count) : "-";
}

void print_table(const checkpoint::TensorFile& file, const std::vector<LayerFindings>& layers) {
  print(fmt::format("{}: {} tensors, {} gated MLP layers\n", file.origin(), file.tensors().size(),
                    layers.size()));
  if (layers.empty()) return;
  Table table({{"layer", Align::kLeft},
               {"kind", Align::kLeft},
               {"N"},
               {"K"},
               {"NaN scales gate / up"},
               {"negative"},
               {"subnormal"},
               {"zero"},
               {"run", Align::kLeft}});
  for (const LayerFindings& layer : layers) {
    table.add_row({layer.prefix, layer.kind, std::to_string(layer.n), std::to_string(layer.k),
                   scale_cell(layer, &ScaleReport::nan), scale_cell(layer, &ScaleReport::negative),
                   scale_cell(layer, &ScaleReport::subnormal),
                   scale_cell(layer, &ScaleReport::zero),
                   !layer.error.empty()     ? "NO, not sound: " + layer.error
                   : !layer.refusal.empty() ? "no: " + layer.refusal
                                            : "yes"});
  }
  print_styled(table.text());
}

Json to_json(const ScaleReport& report) {
  return {{"nan", report.nan},
          {"negative", report.negative},
          {"zero", report.zero},
          {"subnormal", report.subnormal},
          {"first_bad_row", report.first_bad_row},
          {"first_bad_col", report.first_bad_col}};
}

void print_json(const checkpoint::TensorFile& file, const std::vector<LayerFindings>& layers,
                bool passed) {
  Json json = {{"file", file.origin()},
               {"passed", passed},
               {"tensors", file.tensors().size()},
               {"build", provenance()}};
  json["layers"] = Json::array();
  for (const LayerFindings& layer : layers) {
    Json entry = {{"prefix", layer.prefix},
                  {"readable", layer.error.empty()},
                  {"runnable", layer.error.empty() && layer.refusal.empty()}};
    if (!layer.error.empty()) entry["error"] = layer.error;
    if (!layer.refusal.empty()) entry["refusal"] = layer.refusal;
    if (layer.error.empty() && !layer.kind.empty()) {
      entry.update(Json{
          {"kind", layer.kind}, {"type", name_of(layer.type)}, {"n", layer.n}, {"k", layer.k}});
    }
    if (layer.has_scales())
      entry["gate_scales"] = to_json(layer.gate), entry["up_scales"] = to_json(layer.up);
    json["layers"].push_back(std::move(entry));
  }
  print(dump(json));
}

bool talk_about(const LayerFindings& layer, bool strict) {
  if (!layer.error.empty()) {
    talk(layer.prefix + ": " + layer.error);
    return false;
  }
  if (!layer.refusal.empty()) talk(layer.prefix + ": run cannot use it: " + layer.refusal);
  if (layer.is_strict()) return true;
  const auto complain = [&](const char* name, const ScaleReport& report) {
    if (report.nan + report.negative == 0) return;
    talk(fmt::format("{}.{}: {} NaN and {} negative block scales, the first at row {}, block {}",
                     layer.prefix, name, report.nan, report.negative, report.first_bad_row,
                     report.first_bad_col));
  };
  complain("gate", layer.gate);
  complain("up", layer.up);
  return !strict;
}

// The layer that the user names, as the listing has it.
checkpoint::LayerEntry entry_of(const checkpoint::TensorFile& file, const std::string& prefix) {
  for (const checkpoint::LayerEntry& entry : checkpoint::list_mlp_layers(file)) {
    if (entry.prefix == prefix) return entry;
  }
  return {prefix, 0};
}

}  // namespace

int execute(const ValidateCommand& command) {
  const Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(command.input);
  if (!file) return fail(file.status());
  talk_about_left_out(*file);
  std::vector<checkpoint::LayerEntry> entries;
  if (command.prefix.empty()) {
    entries = checkpoint::list_mlp_layers(*file);
  } else {
    entries = {entry_of(*file, command.prefix)};
  }
  std::vector<LayerFindings> layers;
  bool passed = true;
  size_t runnable = 0;
  for (const checkpoint::LayerEntry& entry : entries) {
    LayerFindings layer;
    layer.prefix = entry.prefix;
    const Status status = read_layer(*file, entry.experts, layer);
    if (status.code() == StatusCode::kUnsupported) {
      layer.refusal = status.message();  // sound, but not for this library
    } else if (!status.ok()) {
      layer.error = status.message();
    }
    runnable += layer.error.empty() && layer.refusal.empty() ? 1 : 0;
    layers.push_back(std::move(layer));
    passed = talk_about(layers.back(), command.strict) && passed;
  }
  command.json ? print_json(*file, layers, passed) : print_table(*file, layers);
  talk(fmt::format("{}; {}", passed ? "sound" : "not sound",
                   layers.empty()
                       ? "no gated MLP layer in it that `run` could use"
                       : fmt::format("`run` can use {} of {} layers", runnable, layers.size())));
  return passed ? 0 : 1;
}

}  // namespace dualgemm::cli
