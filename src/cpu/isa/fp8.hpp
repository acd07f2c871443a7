// The multiply loop of strategy `fp8`, compiled for each instruction set.
#pragma once

#include <cstdint>

#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu {

// c[rows][kPanelN] (+)= a[rows][k_count] x w[k_count][kPanelN], decoded E4M3 values, one FP32
// rounding per k in ascending k; `accumulate` false starts from 0.
using Fp8Multiply = void (*)(const float* a, int64_t a_stride, const float* w, int k_count,
                             int rows, bool accumulate, float* c);

namespace scalar {
extern const Fp8Multiply kFp8Multiply;
}
namespace avx2 {
extern const Fp8Multiply kFp8Multiply;
}
namespace avx512 {
extern const Fp8Multiply kFp8Multiply;
}

}  // namespace dualgemm::cpu
