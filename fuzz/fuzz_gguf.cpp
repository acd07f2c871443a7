// Any bytes as a GGUF file: parse, walk every tensor, load every layer and expert, convert.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/gguf.hpp"

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
    sum += touch(tensor.data);
  }
  return sum;
}

uint64_t load_layers(const TensorFile& file) {
  uint64_t sum = 0;
  for (const LayerEntry& entry : list_mlp_layers(file)) {
    LayerOptions options;
    options.max_input_scale = true;
    for (int64_t expert = 0; expert < std::max<int64_t>(1, std::min<int64_t>(entry.experts, 8));
         ++expert) {
      if (entry.experts > 0) options.expert = expert;
      Expected<MlpLayer> layer = load_mlp_layer(file, entry.prefix, options);
      if (!layer) continue;
      require(make_runnable(*layer).ok());
      for (const LayerOperand* operand : {&layer->gate, &layer->up})
        sum += touch(operand->data) + touch(std::as_bytes(operand->scales));
    }
  }
  return sum;
}

}  // namespace

volatile uint64_t fuzz_sink;  // keeps the reads alive

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Expected<TensorFile> file =
      parse_gguf({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
  require(file.ok() || !file.status().message().empty());
  if (!file) return 0;
  fuzz_sink = walk(*file) + load_layers(*file);
  const Expected<TensorFile> converted = convert_checkpoint(*file, {});
  if (converted) fuzz_sink = walk(*converted);
  return 0;
}
