// Any bytes as a safetensors file and as a shard index: parse, walk every tensor, load every layer,
// convert everything.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors.hpp"

namespace {

using namespace dualgemm;
using namespace dualgemm::checkpoint;

void require(bool condition) {
  if (!condition) std::abort();  // the only way to tell libFuzzer
}

uint64_t touch(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<uint64_t>(byte);
  return sum;
}

uint64_t walk(const TensorFile& file) {
  uint64_t sum = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    const Expected<int64_t> bytes = checked_bytes(tensor.dtype, tensor.shape, name);
    require(bytes.ok() && static_cast<uint64_t>(*bytes) == tensor.data.size());
    require(name == tensor.name && file.get(name).ok());
    sum += touch(tensor.data);
    const Expected<std::vector<float>> values = decode_to_f32(tensor);
    require(!values || static_cast<int64_t>(values->size()) == tensor.elements());
  }
  return sum;
}

uint64_t load_layer(const TensorFile& file, const std::string& prefix,
                    const LayerOptions& options) {
  Expected<MlpLayer> layer = load_mlp_layer(file, prefix, options);
  if (!layer) return 0;
  require(make_runnable(*layer).ok());
  require(layer->gate.data.size() == layer->up.data.size());
  uint64_t sum = 0;
  for (const LayerOperand* operand : {&layer->gate, &layer->up}) {
    sum += touch(operand->data) + touch(std::as_bytes(operand->scales));
  }
  return sum;
}

uint64_t load_down(const TensorFile& file, const std::string& prefix, const LayerOptions& options) {
  Expected<DownProjection> down = load_down_projection(file, prefix, options);
  if (!down) return 0;
  require(has_down_projection(file, prefix, options));
  require(make_readable(*down).ok());
  return touch(down->down.data) + touch(std::as_bytes(down->down.scales));
}

// What is read without NaN is read with it allowed, and to the same bytes.
uint64_t load_layers(const TensorFile& file) {
  uint64_t sum = 0;
  LayerOptions strict;
  strict.max_input_scale = true;
  strict.weight.near_names = false;
  for (const LayerEntry& entry : list_mlp_layers(file)) {
    strict.expert = entry.experts > 0 ? std::optional<int64_t>(entry.experts - 1) : std::nullopt;
    LayerOptions lenient = strict;
    lenient.weight.allow_nan = true;
    for (const auto load : {load_layer, load_down}) {
      const uint64_t with_nan = load(file, entry.prefix, lenient);
      const uint64_t without = load(file, entry.prefix, strict);
      require(without == 0 || without == with_nan);
      sum += with_nan;
    }
  }
  return sum;
}

uint64_t convert_all(const TensorFile& file) {
  uint64_t sum = 0;
  for (const Convention convention :
       {Convention::kModelOpt, Convention::kCompressedTensors, Convention::kGgml}) {
    for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
      ConvertOptions options;
      options.convention = convention;
      options.scale_layout = layout;
      options.nibble_order = NibbleOrder::kHighEven;
      const Expected<TensorFile> out = convert_checkpoint(file, options);
      if (out) sum += walk(*out);
    }
  }
  return sum;
}

}  // namespace

volatile uint64_t fuzz_sink;  // keeps the reads alive

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const Expected<TensorFile> file = parse_safetensors(bytes, "fuzz");
  require(file.ok() || !file.status().message().empty());
  if (file) {
    fuzz_sink = walk(*file) + load_layers(*file) + convert_all(*file);
    require(file->get("no such tensor").status().code() == StatusCode::kNotFound ||
            file->contains("no such tensor"));
  }
  const auto index = parse_safetensors_index(bytes, "fuzz");
  if (!index) return 0;
  for (const auto& [tensor, shard] : *index) require(shard.find('/') == std::string::npos);
  return 0;
}
