// Operands of strategy `fp8`: E4M3 codes with one FP32 scale for each row of A, Gate or Up.
//
//   scale = amax(row) / 448,  code = e4m3(x / scale), nearest even
//
// each operation rounded to FP32. A row of zeros has scale 0 and codes 0. A NaN in a row makes its
// scale NaN, and so does an infinity (the code of inf / inf is NaN): the whole row or column of D
// is NaN then.
#pragma once

#include <cstdint>

#include "cpu/operands.hpp"
#include "cpu/work.hpp"

namespace dualgemm::cpu {

struct Fp8Operand {
  uint8_t* codes = nullptr;
  float* scales = nullptr;
};

// Activation: codes[row][k], one scale a row. Weights, per panel: codes[k][kPanelN], kPanelN
// scales; columns beyond n are 0.
Fp8Operand take_fp8_rows(Arena& arena, int64_t rows, int64_t k) noexcept;
Fp8Operand take_fp8_panels(Arena& arena, int64_t panels, int64_t k) noexcept;

// values: k floats of scratch.
void requantise_row(const ActivationSource& source, int64_t k, float* values, uint8_t* codes,
                    float* scale) noexcept;
void requantise_panel(const PanelSource& source, int64_t k, float* values, uint8_t* codes,
                      float* scales) noexcept;

}  // namespace dualgemm::cpu
