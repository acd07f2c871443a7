#include <array>

#include "cpu/cpu_strategy.hpp"
#include "cpu/isa/isa.hpp"
#include "cpu/strategies.hpp"

namespace dualgemm::cpu {

const KernelTable* kernel_table(Isa isa) noexcept {
  switch (isa) {
    case Isa::kScalar:
      return &scalar_table();
#if defined(__x86_64__)
    case Isa::kAvx2:
      return &avx2_table();
    case Isa::kAvx512Vnni:
      return &avx512_table();
    case Isa::kAvx512Bf16:
      return &avx512bf16_table();
    case Isa::kAmxBf16:
      return &amx_table();
#elif defined(__aarch64__)
    case Isa::kNeon:
      return &neon_table();
    case Isa::kNeonI8mm:
      return &neon_i8mm_table();
#endif
    default:
      return nullptr;
  }
}

std::span<const Strategy* const> strategies() {
  static const std::array kStrategies{
      &two_pass_strategy(),       &cached_strategy(),
      &graph_strategy(),          &streams_strategy(),
      &fused_epilogue_strategy(), &fused_sequential_strategy(),
      &fused_strategy(),          &fp8_strategy(),
  };
  return kStrategies;
}

}  // namespace dualgemm::cpu
