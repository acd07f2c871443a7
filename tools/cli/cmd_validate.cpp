#include <fmt/format.h>

#include "dualgemm/formats.hpp"
#include "tools/checkpoint/checkpoint.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/json.hpp"
#include "tools/cli/report.hpp"

namespace dualgemm::cli {
namespace {

struct LayerFindings {
  std::string prefix;
  std::string error;  // why it cannot be read; empty = it can
  std::string kind;   // convention, "stacked"
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

Status read_layer(const checkpoint::TensorFile& file, LayerFindings& findings) {
  checkpoint::LayerOptions options;
  options.max_input_scale = true;  // differing input scales are legal in a file
  const Expected<checkpoint::MlpLayer> layer =
      checkpoint::load_mlp_layer(file, findings.prefix, options);
  if (!layer) return layer.status();
  findings.kind =
      std::string(checkpoint::name_of(layer->convention)) + (layer->stacked ? ", stacked" : "");
  findings.type = layer->type;
  findings.n = layer->n;
  findings.k = layer->k;
  if (layer->type != DataType::kE2M1) return {};
  DUALGEMM_TRY(inspect(*layer, layer->gate, findings.gate));
  return inspect(*layer, layer->up, findings.up);
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
               {"readable", Align::kLeft}});
  for (const LayerFindings& layer : layers) {
    table.add_row({layer.prefix, layer.kind, std::to_string(layer.n), std::to_string(layer.k),
                   scale_cell(layer, &ScaleReport::nan), scale_cell(layer, &ScaleReport::negative),
                   scale_cell(layer, &ScaleReport::subnormal),
                   scale_cell(layer, &ScaleReport::zero),
                   layer.error.empty() ? "yes" : "NO: " + layer.error});
  }
  print(table.text());
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
  Json json = {{"file", file.origin()}, {"passed", passed}, {"tensors", file.tensors().size()}};
  json["layers"] = Json::array();
  for (const LayerFindings& layer : layers) {
    Json entry = {{"prefix", layer.prefix}, {"readable", layer.error.empty()}};
    if (!layer.error.empty()) entry["error"] = layer.error;
    if (layer.error.empty()) {
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

}  // namespace

int execute(const ValidateCommand& command) {
  const Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(command.input);
  if (!file) return fail(file.status());
  std::vector<std::string> prefixes = checkpoint::list_mlp_layers(*file);
  if (!command.prefix.empty()) prefixes = {command.prefix};
  std::vector<LayerFindings> layers;
  bool passed = true;
  for (const std::string& prefix : prefixes) {
    LayerFindings layer;
    layer.prefix = prefix;
    const Status status = read_layer(*file, layer);
    if (!status.ok()) layer.error = status.message();
    layers.push_back(std::move(layer));
    passed = talk_about(layers.back(), command.strict) && passed;
  }
  command.json ? print_json(*file, layers, passed) : print_table(*file, layers);
  talk(passed ? "sound" : "not sound");
  return passed ? 0 : 1;
}

}  // namespace dualgemm::cli
