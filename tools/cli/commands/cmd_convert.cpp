#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/safetensors.hpp"
#include "tools/checkpoint_jobs/model_folder.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/layer_source.hpp"
#include "tools/cli/commands/output_file.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {
namespace {

// The first NVFP4 weight that is not of the convention which the user says the file has, as an
// error.
Status check_convention(const checkpoint::TensorFile& file,
                        const checkpoint::WeightOptions& options) {
  const Expected<std::vector<std::string>> modules = checkpoint::list_nvfp4_weights(file, options);
  if (!modules) return modules.status();
  for (const std::string& module : *modules) {
    const Expected<checkpoint::Weight> weight = checkpoint::load_weight(file, module, options);
    if (!weight) return weight.status();
  }
  return {};
}

}  // namespace

int execute(const ConvertCommand& command) {
  const Expected<checkpoint::TensorFile> in = checkpoint::TensorFile::open(command.input);
  if (!in) return fail(in.status());
  if (const Status status = checkpoint::check_not_input(command.out, *in); !status.ok())
    return fail_usage(status);
  if (const Status status = check_safetensors_name(command.out); !status.ok())
    return fail_usage(status);
  talk_about_left_out(*in);
  checkpoint::ConvertOptions options;
  options.input.scale_layout = command.from_scale_layout;
  options.input.nibble_order = command.from_nibble_order;
  options.convention = command.convention;
  options.scale_layout = command.scale_layout;
  options.nibble_order = command.nibble_order;
  options.input.convention = command.from;
  if (command.from) {
    if (const Status status = check_convention(*in, options.input); !status.ok())
      return fail(status);
  }
  checkpoint::ConvertReport report;
  const Expected<checkpoint::TensorFile> out =
      checkpoint::convert_checkpoint(*in, options, &report);
  if (!out) return fail(out.status());
  if (report.weights_converted == 0) {
    return fail(Status::error(StatusCode::kNotFound, command.input, "no NVFP4 weight",
                              "nothing to convert"));
  }
  if (command.dry_run) {
    talk(fmt::format("dry run: {} weights converted, {} tensors copied", report.weights_converted,
                     report.tensors_copied));
    return end_dry_run({command.out}, command.json);
  }
  if (const Status status = checkpoint::write_safetensors(command.out, *out); !status.ok())
    return fail(status);
  const auto kept =
      std::count_if(out->metadata().begin(), out->metadata().end(), [](const auto& entry) {
        return entry.first.starts_with(checkpoint::kMultiplierKey) ||
               entry.first.starts_with(checkpoint::kDivisorKey);
      });
  if (kept > 0) {
    talk(
        fmt::format("{} global scales are reciprocals that FP32 cannot undo: the metadata keep "
                    "what they were, so converting back gives it again",
                    kept));
  }
  talk(fmt::format("wrote {}: {} weights converted, {} tensors copied", command.out,
                   report.weights_converted, report.tensors_copied));
  return 0;
}

}  // namespace dualgemm::cli
