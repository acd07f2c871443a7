// D as NVFP4 against D in FP32 of the same kernel: the recipe applied to the latter must give the
// former, bit for bit, padding and everything that is not D included.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/quantize_block.hpp"
#include "core/scale_padding.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

// One problem with two types of D, its operands the same.
struct TwoOutputs {
  RandomCase wide, narrow;  // FP32, NVFP4

  // p.d is NVFP4's.
  explicit TwoOutputs(const Problem& p, Values values = Values::kRandom, uint64_t seed = 1)
      : wide(made(in_fp32(p), values, seed)), narrow(made(p, values, seed)) {
    wide.poison_d(), narrow.poison_d();
  }

  // Does the same to both.
  template <class Change>
  void change(const Change& change) {
    change(wide), change(narrow);
  }

  // What must be in narrow.d when a kernel has written both.
  Operand expected() {
    const core::ResolvedMatrix& d = narrow.resolved.d;
    const core::ResolvedMatrix& from = wide.resolved.d;
    const ScaleMap map = d.scale_map();
    const float quantize = core::global_scale_given(narrow.d_global_scale).quantize;
    Operand out;
    out.data = Guarded<uint8_t>(narrow.d.data.size());
    out.scales = Guarded<uint8_t>(narrow.d.scales.size());
    out.data.fill(kPoison), out.scales.fill(kPoison);
    const auto* const values = reinterpret_cast<const float*>(wide.d.data.data());
    Buffers buffers = narrow.buffers();
    buffers.d_scales = out.scales.data();
    core::RowGroups groups(narrow.problem, buffers);
    for (core::RowGroup group; groups.next(group);) {
      uint8_t* const scales = out.scales.data() + group.a_batch * d.scale_batch_stride;
      for (int64_t i = 0; i < group.rows; ++i) {
        const int64_t row = group.row_begin + i;
        for (int64_t block = 0; block < d.sf_cols; ++block) {
          scales[map(group.d_sf_row_begin + i, block)] = core::quantize_block(
              values + group.a_batch * from.batch_stride + row * from.ld + block * 16, quantize,
              out.data.data() + (group.a_batch * d.batch_stride + row * d.ld) / 2 + block * 8);
        }
      }
    }
    core::clear_scale_padding(narrow.resolved, buffers);
    return out;
  }

  ::testing::AssertionResult agree() {
    const Operand right = expected();
    if (auto codes = same("byte of codes", right.data, narrow.d.data); !codes) return codes;
    return same("scale", right.scales, narrow.d.scales);
  }

 private:
  static Problem in_fp32(Problem p) {
    p.d = {.type = DataType::kF32};
    return p;
  }
  static RandomCase made(const Problem& p, Values values, uint64_t seed) {
    Rng rng(seed);
    return {p, rng, values};
  }
  static ::testing::AssertionResult same(const char* what, const Guarded<uint8_t>& right,
                                         const Guarded<uint8_t>& got) {
    for (int64_t i = 0; i < right.size(); ++i) {
      if (right[i] == got[i]) continue;
      return ::testing::AssertionFailure() << what << " " << i << " of " << right.size() << " is "
                                           << +got[i] << ", not " << +right[i];
    }
    return ::testing::AssertionSuccess();
  }
};

// Problems with a D of NVFP4 in both layouts, dense and with gaps: m rows, n columns.
inline Problem with_nvfp4_output(Problem p, bool swizzled_scales, bool gaps) {
  p.d.type = DataType::kE2M1;
  p.d.scale_layout = swizzled_scales ? ScaleLayout::kSwizzled128x4 : ScaleLayout::kLinear;
  if (!gaps) return p;
  p.d.ld = p.n + 6;  // rows at odd multiples of a byte
  p.d.batch_stride = p.d.ld * p.m + 2;
  if (!swizzled_scales) p.d.scale_ld = p.n / 16 + 3;
  return p;
}

// What outputs must survive: sums of zero, below what a global scale reaches, beyond it, NaN.
inline void make_extreme(RandomCase& data, int which) {
  constexpr float kScales[] = {1.0f, 0x1p-140f, 3e38f, 0x1p-20f, 0x1p20f};
  data.d_global_scale = kScales[which % 5];
  if (which % 3 == 1) data.alpha_gate = 3e38f;  // infinite outputs, and NaN: inf * 0
  if (which % 3 == 2 && data.a.scales.size() > 0) data.a.scales[0] = 0x7F;
}

}  // namespace dualgemm::test
