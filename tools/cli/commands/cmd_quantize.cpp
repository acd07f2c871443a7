#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "checkpoint/safetensors.hpp"
#include "tools/checkpoint_jobs/finished_shards.hpp"
#include "tools/checkpoint_jobs/model_folder.hpp"
#include "tools/checkpoint_jobs/output_set.hpp"
#include "tools/checkpoint_jobs/quantization_config.hpp"
#include "tools/checkpoint_jobs/quantize_checkpoint.hpp"
#include "tools/checkpoint_jobs/quantize_selection.hpp"
#include "tools/checkpoint_jobs/staged_folder.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/layer_source.hpp"
#include "tools/cli/commands/output_file.hpp"
#include "tools/cli/commands/ready_run.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {
namespace {

checkpoint::QuantizeCheckpointOptions options_of(const QuantizeCommand& command) {
  checkpoint::QuantizeCheckpointOptions options;
  options.convention = command.convention;
  options.tensors = command.tensors;
  options.prefix = command.prefix;
  options.include = command.include;
  options.exclude = command.exclude;
  options.separate_scales = command.separate_scales;
  options.quantize.global_scale = static_cast<float>(command.global_scale);
  options.quantize.four_over_six = command.four_over_six;
  options.quantize.scale_layout = command.scale_layout;
  options.quantize.threads = command.threads;
  options.measure_error = command.check;
  return options;
}

void print_table(const QuantizeCommand& command,
                 const checkpoint::QuantizeCheckpointReport& report) {
  std::vector<Column> columns = {
      {"tensor", Align::kLeft}, {"rows"}, {"cols"}, {"global scale"}, {"bytes"}};
  if (command.check) {
    for (const char* title : {"rel L2", "max abs", "SNR dB", "clipped %", "to zero %"})
      columns.push_back({title});
  }
  Table table(std::move(columns));
  for (const checkpoint::QuantizedTensor& tensor : report.quantized) {
    std::vector<std::string> row = {tensor.name, std::to_string(tensor.n), std::to_string(tensor.k),
                                    fmt::format("{:.6g}", tensor.global_scale),
                                    fmt::format("{} -> {}", format_bytes(tensor.bytes_before),
                                                format_bytes(tensor.bytes_after))};
    if (tensor.error) {
      row.push_back(fmt::format("{:.5f}", tensor.error->rel_l2));
      row.push_back(fmt::format("{:.4g}", tensor.error->max_abs));
      row.push_back(fmt::format("{:.2f}", tensor.error->snr_db));
      row.push_back(fmt::format("{:.3f}", 100.0 * tensor.error->clipped_share()));
      row.push_back(fmt::format("{:.3f}", 100.0 * tensor.error->zero_share()));
    }
    table.add_row(std::move(row));
  }
  print_styled(table.text());
}

void print_json(const QuantizeCommand& command,
                const checkpoint::QuantizeCheckpointReport& report) {
  Json json = {{"out", command.out},
               {"convention", checkpoint::name_of(command.convention)},
               {"build", provenance()}};
  json["quantized"] = Json::array();
  json["copied"] = report.copied;
  json["left_alone"] = report.left_alone;
  for (const checkpoint::QuantizedTensor& tensor : report.quantized) {
    Json entry = {{"tensor", tensor.name},
                  {"module", tensor.module},
                  {"rows", tensor.n},
                  {"cols", tensor.k},
                  {"global_scale", number(tensor.global_scale)},
                  {"shares_scale", tensor.shares_scale},
                  {"has_input_scale", tensor.has_input_scale},
                  {"bytes_before", tensor.bytes_before},
                  {"bytes_after", tensor.bytes_after}};
    if (tensor.error) {
      entry["error"] = {{"rel_l2", number(tensor.error->rel_l2)},
                        {"max_abs", number(tensor.error->max_abs)},
                        {"mean_abs", number(tensor.error->mean_abs)},
                        {"amax", number(tensor.error->amax)},
                        {"snr_db", number(tensor.error->snr_db)},
                        {"clipped_share", tensor.error->clipped_share()},
                        {"zero_share", tensor.error->zero_share()},
                        {"zero_blocks", tensor.error->zero_blocks}};
    }
    json["quantized"].push_back(std::move(entry));
  }
  print(dump(json));
}

// Can the model's config.json say how it is quantised? Asked before the weights are written.
Status check_config(const QuantizeCommand& command, const std::string& from) {
  const std::string path = from + "/config.json";
  const Expected<std::string> config = checkpoint::read_small_file(path);
  if (!config) return config.status();
  return checkpoint::config_with_quantization(*config, path, command.convention, {}).status();
}

// Does ModelOpt's own file belong beside config.json?
bool writes_hf_config(const QuantizeCommand& command) {
  return checkpoint::row_of(command.convention).config == checkpoint::ModelConfig::kModelOpt;
}

// config.json and hf_quant_config.json of the model: name and text.
using Texts = std::vector<std::pair<std::string, std::string>>;
Expected<Texts> config_texts(const QuantizeCommand& command, const std::string& from,
                             const checkpoint::QuantizeCheckpointReport& report) {
  const std::string config_path = from + "/config.json";
  const Expected<std::string> config = checkpoint::read_small_file(config_path);
  if (!config) return config.status();
  const Expected<std::string> quantized =
      checkpoint::config_with_quantization(*config, config_path, command.convention, report);
  if (!quantized) return quantized.status();
  Texts texts = {{"config.json", *quantized}};
  if (writes_hf_config(command))
    texts.emplace_back("hf_quant_config.json", checkpoint::hf_quant_config(report));
  return texts;
}

// What is in which shard.
struct ShardIndex {
  std::map<std::string, std::vector<std::string>> shards;
  int64_t bytes = 0;
};

// Why loaders of models would not understand the result; empty: they do.
std::string no_config_because(const QuantizeCommand& command) {
  const checkpoint::ConventionRow& row = checkpoint::row_of(command.convention);
  if (!has_model_config(row)) {
    return std::string(row.name) + (holds_blocks(row.id) ? " blocks have" : " has") +
           " no quantization_config";
  }
  if (command.scale_layout != ScaleLayout::kLinear) return "loaders of models expect linear scales";
  return {};
}

// The configs that go with one file: where a whole model is quantised into another folder.
struct ConfigsBeside {
  std::string from, to;  // folders
  bool written = false;
  std::string why_not;  // empty also where no config is expected
};

ConfigsBeside configs_beside_file(const QuantizeCommand& command,
                                  const checkpoint::TensorFile& in) {
  ConfigsBeside configs{
      checkpoint::folder_of(in), std::filesystem::path(command.out).parent_path(), false, {}};
  if (configs.to.empty()) configs.to = ".";
  std::error_code unknown, ignored;  // what cannot be known is found out where it is read
  if (!std::filesystem::exists(configs.from + "/config.json", unknown) && !unknown) return configs;
  configs.why_not = std::filesystem::equivalent(configs.from, configs.to, ignored)
                        ? "the input's lies there; --out FOLDER has one"
                        : no_config_because(command);
  configs.written = configs.why_not.empty();
  return configs;
}

// They are written beside the file: another model's must not be lost without --force.
Status check_replaces_no_config(const QuantizeCommand& command, const ConfigsBeside& configs) {
  if (!configs.written || command.force) return {};
  for (const char* name : {"config.json", "hf_quant_config.json"}) {
    std::error_code unknown;
    if (!std::filesystem::exists(configs.to + "/" + name, unknown) && !unknown) continue;
    return Status::invalid("--out", command.out,
                           std::string("the model's ") + name +
                               " would replace the one that lies beside it; name a file in "
                               "another folder, or replace it with --force");
  }
  return {};
}

// Columns of the chosen tensors that no calibration has, as text; empty: none.
std::string uncalibrated_columns(const checkpoint::TensorFile& in,
                                 const checkpoint::QuantizationChoice& choice,
                                 const checkpoint::QuantizeCheckpointOptions& options) {
  std::set<int64_t> columns;
  for (const auto& [name, scale] : choice.taken) columns.insert(in.find(name)->shape[1]);
  for (const checkpoint::Calibration& calibration : options.calibrations) {
    if (!calibration.activations.shape.empty()) columns.erase(calibration.activations.shape.back());
  }
  return fmt::format("{}", fmt::join(columns, ", "));
}

// One file. Where a whole model is quantised into another folder, its configs too, which come into
// being after the weights that they speak of.
Status write_one_file(const QuantizeCommand& command, const checkpoint::TensorFile& in,
                      const checkpoint::QuantizationChoice& choice,
                      const checkpoint::QuantizeCheckpointOptions& options,
                      checkpoint::QuantizeCheckpointReport& report) {
  const Expected<checkpoint::TensorFile> out =
      checkpoint::quantize_chosen(in, choice, options, report);
  if (!out) return out.status();
  checkpoint::OutputSet files;
  const Expected<checkpoint::AtomicFile*> weights = files.create(command.out);
  if (!weights) return weights.status();
  DUALGEMM_TRY(checkpoint::write_safetensors(**weights, *out));
  const ConfigsBeside configs = configs_beside_file(command, in);
  if (configs.written) {
    const Expected<Texts> texts = config_texts(command, configs.from, report);
    if (!texts) return texts.status();
    for (const auto& [name, text] : *texts) DUALGEMM_TRY(files.add(configs.to + "/" + name, text));
  }
  DUALGEMM_TRY(files.commit());
  if (configs.written) talk("wrote the model's config.json beside it, with quantization_config");
  if (!configs.why_not.empty()) talk("config.json not written: " + configs.why_not);
  return {};
}

// The outputs of --resume depend on all of this.
std::string job_of(const QuantizeCommand& command, const checkpoint::TensorFile& in,
                   const checkpoint::QuantizeCheckpointOptions& options) {
  Json job = {{"version", version()},
              {"input", Json::parse(checkpoint::identity_of(in))},
              {"convention", checkpoint::name_of(command.convention)},
              {"tensors", command.tensors},
              {"prefix", command.prefix},
              {"include", command.include},
              {"exclude", command.exclude},
              {"separate_scales", command.separate_scales},
              {"global_scale", command.global_scale},
              {"four_over_six", command.four_over_six},
              {"scale_layout", name_of(command.scale_layout)}};
  job["calibrations"] = Json::array();
  for (const checkpoint::Calibration& one : options.calibrations) {
    const Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(one.origin);
    if (file) job["calibrations"].push_back(Json::parse(checkpoint::identity_of(*file)));
  }
  return job.dump(1) + "\n";
}

// One shard of the output under its name in `folder`. finished: where it lies already, or will for
// the next run; null: no --resume. True: it was there.
Expected<bool> write_shard(const checkpoint::TensorFile& in, const std::string& shard,
                           const std::vector<std::string>& names,
                           const checkpoint::QuantizationChoice& choice,
                           const checkpoint::QuantizeCheckpointOptions& options,
                           const checkpoint::FinishedShards* finished,
                           checkpoint::StagedFolder& folder,
                           checkpoint::QuantizeCheckpointReport& report, ShardIndex& index) {
  Expected<checkpoint::TensorFile> out = checkpoint::TensorFile();
  const Expected<bool> was_there = finished ? finished->find(shard, report) : Expected<bool>(false);
  if (!was_there) return was_there;
  if (*was_there) {
    out = checkpoint::TensorFile::open(finished->path(shard));
  } else {
    const Expected<checkpoint::TensorFile> part = checkpoint::part_of(in, names);
    if (!part) return part.status();
    checkpoint::QuantizeCheckpointReport own;
    checkpoint::QuantizeCheckpointReport& to = finished ? own : report;
    out = checkpoint::quantize_chosen(*part, choice, options, to);
    if (out && finished) {
      DUALGEMM_TRY(finished->add(shard, *out, own));
      if (const Expected<bool> there = finished->find(shard, report); !there) return there;
    }
  }
  if (!out) return out.status();
  for (const auto& [name, tensor] : out->tensors()) {
    index.shards[shard].push_back(name);
    index.bytes += static_cast<int64_t>(tensor.data.size());
  }
  const std::string path = folder.path(shard);
  DUALGEMM_TRY(finished ? finished->put(shard, path) : checkpoint::write_safetensors(path, *out));
  return *was_there;
}

// The same shards as the input's, one in memory at a time; `index` says what is in which.
Status write_shards(const checkpoint::TensorFile& in, const checkpoint::QuantizationChoice& choice,
                    const checkpoint::QuantizeCheckpointOptions& options,
                    const checkpoint::FinishedShards* finished, checkpoint::StagedFolder& folder,
                    checkpoint::QuantizeCheckpointReport& report, ShardIndex& index) {
  const auto shards = checkpoint::shards_of(in);
  if (!shards) return shards.status();
  size_t there = 0;
  for (const auto& [shard, names] : *shards) {
    const Expected<bool> was_there =
        write_shard(in, shard, names, choice, options, finished, folder, report, index);
    if (!was_there) return was_there.status();
    there += *was_there ? 1 : 0;
  }
  if (there > 0) {
    talk(fmt::format("went on where an interrupted run ended: {} of {} shards were there", there,
                     shards->size()));
  }
  return {};
}

// A folder with all that loaders need, which appears complete or not at all. Where it cannot, its
// files come in this order: a model is none before its index, and shards alone are refused.
Status write_folder(const QuantizeCommand& command, const checkpoint::TensorFile& in,
                    const checkpoint::QuantizationChoice& choice,
                    const checkpoint::QuantizeCheckpointOptions& options,
                    const std::vector<std::string>& obsolete,
                    checkpoint::QuantizeCheckpointReport& report) {
  const std::string from = checkpoint::folder_of(in), no_config = no_config_because(command);
  if (no_config.empty()) DUALGEMM_TRY(check_config(command, from));
  Expected<checkpoint::StagedFolder> folder = checkpoint::StagedFolder::create(command.out);
  if (!folder) return folder.status();
  for (const std::string& left : folder->swept())
    talk("removed " + left + ", which an interrupted run left; starting anew");
  std::optional<checkpoint::FinishedShards> finished;
  if (command.resume) {
    Expected<checkpoint::FinishedShards> opened =
        checkpoint::FinishedShards::open(command.out, job_of(command, in, options));
    if (!opened) return opened.status();
    finished.emplace(*std::move(opened));
  }
  ShardIndex index;
  DUALGEMM_TRY(
      write_shards(in, choice, options, finished ? &*finished : nullptr, *folder, report, index));
  const bool has_index =
      index.shards.size() > 1 || checkpoint::is_shard_name(index.shards.begin()->first);
  if (is_folder(command.input) || has_index)
    DUALGEMM_TRY(checkpoint::copy_model_files(from, *folder));
  if (no_config.empty()) {
    const Expected<Texts> texts = config_texts(command, from, report);
    if (!texts) return texts.status();
    for (const auto& [name, text] : *texts)
      DUALGEMM_TRY(checkpoint::write_file(folder->path(name), std::as_bytes(std::span(text))));
  }
  if (has_index) {
    DUALGEMM_TRY(checkpoint::write_safetensors_index(folder->path("model.safetensors.index.json"),
                                                     index.shards, index.bytes));
  }
  DUALGEMM_TRY(folder->commit(obsolete));
  if (finished) finished->remove();
  if (!no_config.empty()) talk("config.json not written: " + no_config);
  return {};
}

// What a run with --dry-run would have written.
std::vector<std::string> outputs_of(const QuantizeCommand& command,
                                    const checkpoint::TensorFile& in, bool to_folder) {
  const ConfigsBeside configs = configs_beside_file(command, in);
  if (to_folder || !configs.written) return {command.out};
  std::vector<std::string> paths = {command.out, configs.to + "/config.json"};
  if (writes_hf_config(command)) paths.push_back(configs.to + "/hf_quant_config.json");
  return paths;
}

void talk_about(const QuantizeCommand& command, const checkpoint::QuantizeCheckpointReport& report,
                bool calibrated) {
  for (const checkpoint::QuantizedTensor& tensor : report.quantized) {
    if (!calibrated || tensor.has_input_scale) continue;
    talk(fmt::format("{}: {} columns, not those of {}; no input scale written", tensor.name,
                     tensor.k, fmt::join(command.calibrate, ", ")));
  }
  if (!report.left_alone.empty()) {
    talk(fmt::format("left as they are: {}{}", report.left_alone.front(),
                     report.left_alone.size() > 1
                         ? fmt::format(" and {} more", report.left_alone.size() - 1)
                         : ""));
  }
  talk(fmt::format("wrote {}: {} tensors quantised, {} copied", command.out,
                   report.quantized.size(), report.copied.size()));
}

}  // namespace

int execute(const QuantizeCommand& command) {
  if (const Status status = check_threads(command.threads); !status.ok()) return fail_usage(status);
  const Expected<checkpoint::TensorFile> in = checkpoint::TensorFile::open(command.input);
  if (!in) return fail(in.status());
  if (const Status status = checkpoint::check_not_input(command.out, *in); !status.ok())
    return fail_usage(status);
  talk_about_left_out(*in);
  const bool is_sharded = in->paths().size() > 1;
  const bool to_folder =
      is_folder(command.out) || command.out.ends_with('/') ||
      ((is_sharded || is_folder(command.input)) && !command.out.ends_with(".safetensors"));
  if (command.resume && (!to_folder || command.check)) {
    return fail_usage(Status::invalid("--resume", "given",
                                      to_folder ? "not with --check, which reads all weights anew"
                                                : "only where a folder is written"));
  }
  std::vector<std::string> obsolete;
  const auto old = command.force ? checkpoint::OldModel::kReplaced : checkpoint::OldModel::kRefused;
  if (const Status status = to_folder ? checkpoint::check_model_folder(command.out, old, &obsolete)
                                      : check_safetensors_name(command.out);
      !status.ok()) {
    return fail_usage(status);
  }
  if (const Status status = check_replaces_no_config(command, configs_beside_file(command, *in));
      !to_folder && !status.ok()) {
    return fail_usage(status);
  }
  checkpoint::QuantizeCheckpointOptions options = options_of(command);
  std::vector<checkpoint::TensorFile> calibrations;  // keep the views alive
  for (const std::string& path : command.calibrate) {
    const Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(path);
    if (!file) return fail(file.status());
    if (const Status status = checkpoint::check_not_input(command.out, *file);
        (!to_folder || command.force) && !status.ok())
      return fail_usage(status);
    const Expected<checkpoint::TensorView> tensor = file->get_or_only("");
    if (!tensor) return fail(tensor.status());
    calibrations.push_back(*file);
    options.calibrations.push_back({*tensor, path});
  }
  const Expected<checkpoint::QuantizationChoice> choice = checkpoint::choose_tensors(*in, options);
  if (!choice) return fail(choice.status());
  // Loaders that read W4A16 in the config have no place for an input scale.
  const bool configs =
      to_folder ? no_config_because(command).empty() : configs_beside_file(command, *in).written;
  if (const std::string columns = uncalibrated_columns(*in, *choice, options);
      configs && !options.calibrations.empty() && !columns.empty()) {
    talk(
        fmt::format("no input scales written: weights have {} columns, of which --calibrate has no "
                    "activations; the config says W4A16",
                    columns));
    options.calibrations.clear();
  }
  if (command.dry_run) {
    talk(fmt::format("dry run: {} tensors to quantise", choice->taken.size()));
    return end_dry_run(outputs_of(command, *in, to_folder), command.json);
  }
  checkpoint::QuantizeCheckpointReport report;
  const Status status = to_folder ? write_folder(command, *in, *choice, options, obsolete, report)
                                  : write_one_file(command, *in, *choice, options, report);
  if (!status.ok()) return fail(status);
  if (command.json) {
    print_json(command, report);
  } else if (command.check) {
    print_table(command, report);
  }
  talk_about(command, report, !options.calibrations.empty());
  return 0;
}

}  // namespace dualgemm::cli
