// The tables that the files beside this one define.
#pragma once

#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu {

const KernelTable& scalar_table() noexcept;
const KernelTable& avx2_table() noexcept;
const KernelTable& avx512_table() noexcept;
const KernelTable& avx512bf16_table() noexcept;
const KernelTable& amx_table() noexcept;
const KernelTable& neon_table() noexcept;
const KernelTable& neon_i8mm_table() noexcept;

}  // namespace dualgemm::cpu
