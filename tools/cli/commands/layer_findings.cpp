#include "tools/cli/commands/layer_findings.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

namespace dualgemm::cli {
namespace {

// A message without what differs between layers: the file, the layer, numbers, and what was
// observed.
std::string kind_of(const Status& status, const std::string& origin, const std::string& prefix) {
  std::string text = status.argument() + "|" + status.rule();
  for (const std::string& name : {origin, prefix}) {
    for (size_t at = 0; !name.empty() && (at = text.find(name, at)) != text.npos;)
      text.erase(at, name.size());
  }
  std::string kind = status_code_name(status.code());
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || kind.back() != '#') kind += is_digit ? '#' : c;
  }
  return kind;
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

Status inspect(const checkpoint::LayerOperand& operand, ScaleLayout layout, int64_t n, int64_t k,
               ScaleReport& sum) {
  const Expected<ScaleReport> found = inspect_scales(operand.scales.data(), layout, n, k / kSfVec);
  if (!found) return found.status();
  add_up(sum, *found);
  return {};
}

class LayerReader {
 public:
  explicit LayerReader(const checkpoint::TensorFile& file) : file_(file) {}

  LayerFindings read(const checkpoint::LayerEntry& entry, bool allow_nan) {
    LayerFindings findings;
    Status status = read_experts(entry, allow_nan, findings);
    if (!status.ok() && !allow_nan) {
      // What else there is to say about a layer whose only fault are such scales.
      LayerFindings facts;
      if (read_experts(entry, true, facts).ok()) findings = facts;
    }
    findings.prefix = entry.prefix;
    if (status.ok()) return findings;
    Defect& defect = status.code() == StatusCode::kUnsupported ? findings.refusal : findings.error;
    defect.kind = kind_of(status, file_.origin(), entry.prefix);
    if (status.code() == StatusCode::kNotFound && named_.insert(defect.kind).second) {
      options_.weight.near_names =
          true;  // once for each kind: it takes as long as the file has names
      LayerFindings ignored;
      status = read_experts(entry, allow_nan, ignored);
      options_.weight.near_names = false;
    }
    defect.message = status.message();
    return findings;
  }

 private:
  Status read_experts(const checkpoint::LayerEntry& entry, bool allow_nan,
                      LayerFindings& findings) {
    options_.weight.allow_nan = allow_nan;
    options_.expert.reset();
    if (entry.experts == 0) return read_one(entry.prefix, findings);
    for (int64_t expert = 0; expert < entry.experts; ++expert) {
      options_.expert = expert;
      DUALGEMM_TRY(read_one(entry.prefix, findings));
    }
    findings.kind += fmt::format(", {} experts", entry.experts);
    return {};
  }

  // One layer, or one expert of it.
  Status read_one(const std::string& prefix, LayerFindings& findings) {
    options_.max_input_scale = false;
    Expected<checkpoint::MlpLayer> layer = checkpoint::load_mlp_layer(file_, prefix, options_);
    if (!layer) {
      options_.max_input_scale = true;  // differing input scales are legal in a file
      Expected<checkpoint::MlpLayer> with_max = checkpoint::load_mlp_layer(file_, prefix, options_);
      if (!with_max) return layer.status();
      refuse("only with --max-input-scale: ", layer.status(), prefix, findings);
      layer = std::move(with_max);
    }
    findings.kind =
        std::string(checkpoint::stored_as(*layer)) + (layer->stacked ? ", stacked" : "");
    if (!layer->pre_quant_scale.empty()) findings.kind += ", pre_quant_scale";
    if (layer->unwritten_input_scale) findings.kind += ", input scale never written";
    findings.type = layer->type;
    findings.n = layer->n;
    findings.k = layer->k;
    if (const Status status = checkpoint::check_runnable(*layer); !status.ok())
      refuse("", status, prefix, findings);
    if (layer->type == DataType::kE2M1) {
      DUALGEMM_TRY(inspect(layer->gate, layer->scale_layout, layer->n, layer->k, findings.gate));
      DUALGEMM_TRY(inspect(layer->up, layer->scale_layout, layer->n, layer->k, findings.up));
    }
    return read_down(prefix, *layer, findings);
  }

  // Down in another quantisation is sound, and `run` needs none.
  Status read_down(const std::string& prefix, const checkpoint::MlpLayer& layer,
                   LayerFindings& findings) {
    findings.has_down = checkpoint::has_down_projection(file_, prefix, options_);
    if (!findings.has_down) return {};
    const Expected<checkpoint::DownProjection> down =
        checkpoint::load_down_projection(file_, prefix, options_);
    if (!down) return down.status().code() == StatusCode::kUnsupported ? Status() : down.status();
    if (down->n != layer.k || down->k != layer.n) {
      return Status::error(StatusCode::kCorruptFile,
                           fmt::format("{}, tensor '{}'", file_.origin(), down->down.tensor_name),
                           fmt::format("{} x {}", down->n, down->k),
                           fmt::format("must be {} x {}, as gate and up are {} x {}", layer.k,
                                       layer.n, layer.n, layer.k));
    }
    findings.down = DownFindings{down->type, down->n, down->k};
    if (down->type != DataType::kE2M1) return {};
    return inspect(down->down, down->scale_layout, down->n, down->k, findings.down_scales);
  }

  void refuse(const std::string& begin, const Status& status, const std::string& prefix,
              LayerFindings& findings) const {
    findings.refusal = {begin + status.message(), kind_of(status, file_.origin(), prefix)};
  }

  const checkpoint::TensorFile& file_;
  checkpoint::LayerOptions options_ = [] {
    checkpoint::LayerOptions options;
    options.weight.near_names = false;
    options.pre_quant_scale = true;
    return options;
  }();
  std::set<std::string> named_;  // kinds that have got near names
};

// Experts that are modules of their own are one layer: numbered from 0 without a gap, all of the
// same shape, all with Down or none.
void compare_experts(std::vector<LayerFindings>& layers) {
  std::map<std::string, std::map<int64_t, LayerFindings*>> groups;
  for (LayerFindings& layer : layers) {
    if (const auto split = checkpoint::split_expert(layer.prefix))
      groups[split->first][split->second] = &layer;
  }
  for (const auto& [parent, experts] : groups) {
    const LayerFindings* first = nullptr;
    int64_t next = 0;
    for (const auto& [number, layer] : experts) {
      const auto contradict = [&, layer = layer](std::string observed, const char* rule) {
        if (!layer->error.found()) layer->error = {fmt::format("{}; {}", observed, rule), rule};
      };
      if (number != next) {
        contradict(fmt::format("there is no expert {} before it", next),
                   "experts are numbered from 0 without a gap");
      }
      next = number + 1;
      if (!layer->is_read()) continue;
      if (first == nullptr) first = layer;
      if (layer->n != first->n || layer->k != first->k) {
        contradict(fmt::format("{} x {}, beside {} x {}", layer->n, layer->k, first->n, first->k),
                   "all experts of a layer must have the same shape");
      }
      if (layer->has_down != first->has_down) {
        contradict(
            layer->has_down ? "a Down beside experts without" : "no Down beside experts with one",
            "all experts of a layer must have one, or none");
      }
    }
  }
}

}  // namespace

bool LayerFindings::is_strict() const {
  int64_t bad = 0;
  for (const ScaleReport* report : {&gate, &up, &down_scales})
    bad += report->nan + report->negative;
  return bad == 0;
}

std::vector<LayerFindings> find_in_layers(const checkpoint::TensorFile& file,
                                          const std::vector<checkpoint::LayerEntry>& entries,
                                          bool whole, bool allow_nan) {
  LayerReader reader(file);
  std::vector<LayerFindings> layers;
  layers.reserve(entries.size());
  for (const checkpoint::LayerEntry& entry : entries)
    layers.push_back(reader.read(entry, allow_nan));
  if (whole) compare_experts(layers);
  return layers;
}

}  // namespace dualgemm::cli
