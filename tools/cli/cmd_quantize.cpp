#include <fmt/format.h>

#include "tools/checkpoint/quantize_checkpoint.hpp"
#include "tools/checkpoint/safetensors.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/json.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/report.hpp"

namespace dualgemm::cli {
namespace {

checkpoint::QuantizeCheckpointOptions options_of(const QuantizeCommand& command) {
  checkpoint::QuantizeCheckpointOptions options;
  options.convention = command.convention;
  options.tensors = command.tensors;
  options.prefix = command.prefix;
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
  print(table.text());
}

void print_json(const QuantizeCommand& command,
                const checkpoint::QuantizeCheckpointReport& report) {
  Json json = {{"out", command.out},
               {"convention", checkpoint::name_of(command.convention)},
               {"build", provenance()}};
  json["quantized"] = Json::array();
  json["copied"] = report.copied;
  for (const checkpoint::QuantizedTensor& tensor : report.quantized) {
    Json entry = {{"tensor", tensor.name},
                  {"module", tensor.module},
                  {"rows", tensor.n},
                  {"cols", tensor.k},
                  {"global_scale", number(tensor.global_scale)},
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

}  // namespace

int execute(const QuantizeCommand& command) {
  const Expected<checkpoint::TensorFile> in = checkpoint::TensorFile::open(command.input);
  if (!in) return fail(in.status());
  checkpoint::QuantizeCheckpointOptions options = options_of(command);
  checkpoint::TensorFile calibration;  // keeps the view alive
  if (!command.calibrate.empty()) {
    Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(command.calibrate);
    if (!file) return fail(file.status());
    calibration = *std::move(file);
    const Expected<checkpoint::TensorView> tensor = calibration.get_or_only("");
    if (!tensor) return fail(tensor.status());
    options.calibration = *tensor;
  }
  checkpoint::QuantizeCheckpointReport report;
  const Expected<checkpoint::TensorFile> out =
      checkpoint::quantize_checkpoint(*in, options, &report);
  if (!out) return fail(out.status());
  if (const Status status = checkpoint::write_safetensors(command.out, *out); !status.ok())
    return fail(status);

  if (command.json) {
    print_json(command, report);
  } else if (command.check) {
    print_table(command, report);
  }
  for (const checkpoint::QuantizedTensor& tensor : report.quantized) {
    if (command.calibrate.empty() || tensor.has_input_scale) continue;
    talk(fmt::format("{}: {} columns, not those of {}; no input scale written", tensor.name,
                     tensor.k, command.calibrate));
  }
  talk(fmt::format("wrote {}: {} tensors quantised, {} copied", command.out,
                   report.quantized.size(), report.copied.size()));
  return 0;
}

}  // namespace dualgemm::cli
