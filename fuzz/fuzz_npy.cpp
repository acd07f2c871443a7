// Any bytes as a .npy file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "checkpoint/npy.hpp"

volatile uint64_t fuzz_sink;  // keeps the reads alive

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dualgemm::checkpoint;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const bool u2_is_bf16 : {false, true}) {
    const auto tensor = parse_npy(bytes, "fuzz.npy", {.u2_is_bf16 = u2_is_bf16});
    if (!tensor) continue;
    const auto needed = checked_bytes(tensor->dtype, tensor->shape, tensor->name);
    if (!needed || static_cast<uint64_t>(*needed) != tensor->data.size()) std::abort();
    uint64_t sum = 0;
    for (const std::byte byte : tensor->data) sum += std::to_integer<uint64_t>(byte);
    const auto values = decode_to_f32(*tensor);
    fuzz_sink = sum + (values ? values->size() : 0);
  }
  return 0;
}
