#include "bench/cuda/operands.hpp"

#include <cstring>

#include "core/half.hpp"

namespace dualgemm::bench {
namespace {

constexpr float kAlpha = 0.02f;

void fill_codes(std::vector<uint8_t>& bytes, Random& random) {
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    const uint64_t word = random();
    std::memcpy(&bytes[at], &word, 8);
  }
  for (; at < bytes.size(); ++at) bytes[at] = static_cast<uint8_t>(random());
}

void fill_scales(std::vector<uint8_t>& bytes, Random& random) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(0x20 + random() % 41);
}

void fill_activations(std::vector<uint8_t>& bytes, DataType type, Random& random) {
  if (type == DataType::kE2M1) return fill_codes(bytes, random);
  for (size_t at = 0; at + 2 <= bytes.size(); at += 2) {
    float sum = -2.0f;  // of four uniform numbers: about normal
    for (int j = 0; j < 4; ++j) sum += static_cast<float>(random() % 65536) / 65536.0f;
    const uint16_t value =
        type == DataType::kF16 ? core::encode_f16(1.7f * sum) : core::encode_bf16(1.7f * sum);
    std::memcpy(&bytes[at], &value, 2);
  }
}

}  // namespace

Buffers HostOperands::buffers() {
  Buffers buffers;
  buffers.a = a.data();
  buffers.a_scales = a_scales.empty() ? nullptr : a_scales.data();
  buffers.gate = gate.data(), buffers.gate_scales = gate_scales.data();
  buffers.up = up.data(), buffers.up_scales = up_scales.data();
  buffers.d = d.data();
  buffers.alpha_gate = buffers.alpha_up = kAlpha;
  return buffers;
}

Expected<HostOperands> random_operands(const Problem& problem) {
  const Expected<OperandSizes> sizes = operand_sizes(problem);
  if (!sizes) return sizes.status();
  HostOperands host;
  const auto resize = [](std::vector<uint8_t>& bytes, int64_t size) {
    bytes.resize(static_cast<size_t>(size));
  };
  resize(host.a, sizes->a), resize(host.a_scales, sizes->a_scales), resize(host.d, sizes->d);
  resize(host.gate, sizes->gate), resize(host.gate_scales, sizes->gate_scales);
  resize(host.up, sizes->up), resize(host.up_scales, sizes->up_scales);
  Random random;
  fill_activations(host.a, problem.a.type, random);
  fill_scales(host.a_scales, random);
  fill_codes(host.gate, random), fill_scales(host.gate_scales, random);
  fill_codes(host.up, random), fill_scales(host.up_scales, random);
  return host;
}

}  // namespace dualgemm::bench
