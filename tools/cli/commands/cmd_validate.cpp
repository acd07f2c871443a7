#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "checkpoint/checkpoint.hpp"
#include "dualgemm/formats.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/layer_findings.hpp"
#include "tools/cli/commands/layer_source.hpp"
#include "tools/cli/commands/model_report.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {
namespace {

std::string scale_cell(const LayerFindings& layer, int64_t ScaleReport::*count) {
  if (!layer.has_scales()) return "-";
  std::string cell = fmt::format("{} / {}", layer.gate.*count, layer.up.*count);
  if (layer.has_down_scales()) cell += fmt::format(" / {}", layer.down_scales.*count);
  return cell;
}

const char* down_cell(const LayerFindings& layer) {
  return layer.down ? name_of(layer.down->type) : layer.has_down ? "unread" : "-";
}

void print_table(const checkpoint::TensorFile& file, const std::vector<LayerFindings>& layers) {
  print(fmt::format("{}: {} tensors, {} gated MLP layers\n", file.origin(), file.tensors().size(),
                    layers.size()));
  if (layers.empty()) return;
  Table table({{"layer", Align::kLeft},
               {"kind", Align::kLeft},
               {"N"},
               {"K"},
               {"down"},
               {"NaN scales"},
               {"negative"},
               {"subnormal"},
               {"zero"},
               {"run", Align::kLeft}});
  for (const LayerFindings& layer : layers) {
    table.add_row({layer.prefix, layer.kind, std::to_string(layer.n), std::to_string(layer.k),
                   down_cell(layer), scale_cell(layer, &ScaleReport::nan),
                   scale_cell(layer, &ScaleReport::negative),
                   scale_cell(layer, &ScaleReport::subnormal),
                   scale_cell(layer, &ScaleReport::zero),
                   layer.error.found()     ? "NO, not sound: " + layer.error.message
                   : layer.refusal.found() ? "no: " + layer.refusal.message
                                           : "yes"});
  }
  print_styled(table.text());
}

Json scales_json(const ScaleReport& report) {
  return {{"nan", report.nan},
          {"negative", report.negative},
          {"zero", report.zero},
          {"subnormal", report.subnormal},
          {"first_bad_row", report.first_bad_row},
          {"first_bad_col", report.first_bad_col}};
}

void print_json(const checkpoint::TensorFile& file, const std::vector<LayerFindings>& layers,
                const std::optional<ModelReport>& model, bool passed) {
  Json json = {{"file", file.origin()},
               {"passed", passed},
               {"tensors", file.tensors().size()},
               {"build", provenance()}};
  if (model) json["model"] = model_json(*model);
  json["layers"] = Json::array();
  for (const LayerFindings& layer : layers) {
    Json entry = {{"prefix", layer.prefix},
                  {"readable", !layer.error.found()},
                  {"runnable", layer.is_runnable()}};
    if (layer.error.found()) entry["error"] = layer.error.message;
    if (layer.refusal.found()) entry["refusal"] = layer.refusal.message;
    if (layer.is_read()) {
      entry.update(Json{
          {"kind", layer.kind}, {"type", name_of(layer.type)}, {"n", layer.n}, {"k", layer.k}});
    }
    if (layer.down) {
      entry["down"] = {
          {"type", name_of(layer.down->type)}, {"n", layer.down->n}, {"k", layer.down->k}};
    }
    if (layer.has_scales())
      entry["gate_scales"] = scales_json(layer.gate), entry["up_scales"] = scales_json(layer.up);
    if (layer.has_down_scales()) entry["down_scales"] = scales_json(layer.down_scales);
    json["layers"].push_back(std::move(entry));
  }
  print(dump(json));
}

// Lines about layers, at most so many of one kind.
class Lines {
 public:
  void add(const LayerFindings& layer, const Defect& defect, const std::string& begin = "") {
    Kind& kind = kinds_[begin + defect.kind];
    if (++kind.layers == kMost) kind.last = layer.prefix + begin + ": " + defect.message;
    if (kind.layers < kMost) talk(layer.prefix + begin + ": " + defect.message);
  }
  // What add() kept back.
  void finish() const {
    for (const auto& [name, kind] : kinds_) {
      if (kind.layers < kMost) continue;
      const int64_t more = kind.layers - kMost;
      talk(kind.last + (more > 0 ? fmt::format(" (and {} more layers like it)", more) : ""));
    }
  }

 private:
  static constexpr int64_t kMost = 20;
  struct Kind {
    int64_t layers = 0;
    std::string last;  // the last line that is said
  };
  std::map<std::string, Kind> kinds_;
};

// Whether the layer passes.
bool talk_about(const LayerFindings& layer, bool strict, Lines& lines) {
  if (layer.error.found()) {
    lines.add(layer, layer.error);
    return false;
  }
  if (layer.refusal.found()) lines.add(layer, layer.refusal, ": run cannot use it");
  if (layer.is_strict()) return true;
  const auto complain = [&](const char* name, const ScaleReport& report) {
    if (report.nan + report.negative == 0) return;
    const std::string scales =
        fmt::format("{} NaN and {} negative block scales, the first at row {}, block {}",
                    report.nan, report.negative, report.first_bad_row, report.first_bad_col);
    lines.add(layer, {scales, "scales"}, name);
  };
  complain(".gate", layer.gate);
  complain(".up", layer.up);
  complain(".down", layer.down_scales);
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
  const std::vector<LayerFindings> layers =
      find_in_layers(*file, entries, command.prefix.empty(), command.allow_nan);
  bool passed = true;
  Lines lines;
  for (const LayerFindings& layer : layers)
    passed = talk_about(layer, command.strict, lines) && passed;
  lines.finish();
  // One layer of it is asked for: the model around it is not looked at.
  const std::optional<ModelReport> model =
      command.prefix.empty() ? report_model(*file) : std::nullopt;
  if (model && !command.json) print_model(*model);
  passed = passed && (!model || model->errors.empty());
  const auto runnable = std::count_if(
      layers.begin(), layers.end(), [](const LayerFindings& layer) { return layer.is_runnable(); });
  command.json ? print_json(*file, layers, model, passed) : print_table(*file, layers);
  talk(fmt::format("{}; {}", passed ? "sound" : "not sound",
                   layers.empty()
                       ? "no gated MLP layer in it that `run` could use"
                       : fmt::format("`run` can use {} of {} layers", runnable, layers.size())));
  return passed ? 0 : 1;
}

}  // namespace dualgemm::cli
