// Any bytes as config.json and hf_quant_config.json, a zero byte between them: an error or a
// config, and of a config an answer for every module.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "checkpoint/model_quantization.hpp"

namespace {

using namespace dualgemm::checkpoint;

void require(bool condition) {
  if (!condition) std::abort();  // the only way to tell libFuzzer
}

void ask(const ModelQuantization& config, std::string_view module) {
  const auto schemes = config.schemes_of(module);
  require(schemes.size() <= config.groups().size());
  require(!config.is_ignored(module) || schemes.empty());
  for (const LinearScheme* scheme : schemes) {
    require(!text_of(*scheme).empty() || scheme->format == LinearFormat::kOther);
    require(agree(*scheme, *scheme));
  }
  const auto rotation = config.hadamard_of(std::string(module));
  require(!rotation || *rotation == 0 ||
          (*rotation >= 16 && *rotation <= 256 && (*rotation & (*rotation - 1)) == 0));
  require(!config.rotations().empty() || !config.is_rotation(module));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t zero = text.find('\0');
  const std::string config = text.substr(0, zero);
  const std::string hf_config = zero == text.npos ? "" : text.substr(zero + 1);
  const auto found = ModelQuantization::parse(config, hf_config, "model");
  require(found.ok() || !found.status().message().empty());
  if (!found) return 0;
  for (const char* module : {"", ".", "lm_head", "model.layers.11.mlp.experts.7.up_proj",
                             "model.layers.0.self_attn.q_proj", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    ask(*found, module);
  ask(*found, std::string_view(text).substr(0, 200));
  return 0;
}
