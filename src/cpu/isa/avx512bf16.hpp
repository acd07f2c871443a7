// The engine for bf16 activations, which AMX's table takes, too.
#pragma once

#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu::avx512 {

extern const Engine kBf16Engine;

}  // namespace dualgemm::cpu::avx512
