#include <fmt/format.h>

#include "tools/checkpoint/safetensors.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/report.hpp"

namespace dualgemm::cli {
namespace {

bool strip_suffix(const std::string& name, const std::string& suffix, std::string& module) {
  if (name.size() <= suffix.size() ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
    return false;
  module = name.substr(0, name.size() - suffix.size());
  return true;
}

// The first NVFP4 weight that is not of the convention which the user says the file has, as an
// error.
Status check_convention(const checkpoint::TensorFile& file,
                        const checkpoint::WeightOptions& options) {
  for (const auto& [name, tensor] : file.tensors()) {
    std::string module;
    if (tensor.dtype != checkpoint::ElementType::kU8) continue;
    if (!strip_suffix(name, ".weight", module) && !strip_suffix(name, ".weight_packed", module))
      continue;
    const Expected<checkpoint::Weight> weight = checkpoint::load_weight(file, module, options);
    if (!weight) return weight.status();
  }
  return {};
}

}  // namespace

int execute(const ConvertCommand& command) {
  const Expected<checkpoint::TensorFile> in = checkpoint::TensorFile::open(command.input);
  if (!in) return fail(in.status());
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
  if (const Status status = checkpoint::write_safetensors(command.out, *out); !status.ok())
    return fail(status);
  talk(fmt::format("wrote {}: {} weights converted, {} tensors copied", command.out,
                   report.weights_converted, report.tensors_copied));
  return 0;
}

}  // namespace dualgemm::cli
