#include "cpu/store_tile.hpp"

#include <cstring>

#include "core/half.hpp"
#include "core/quantize_block.hpp"

namespace dualgemm::cpu {
namespace {

void store_row(const KernelTable& table, DataType type, const float* values, uint8_t* out,
               int cols) noexcept {
  if (type == DataType::kF32) {
    std::memcpy(out, values, static_cast<size_t>(cols) * sizeof(float));
    return;
  }
  uint16_t half[kPanelN];
  if (type == DataType::kF16) {
    table.f32_to_f16(values, half, kPanelN);
  } else {
    for (int c = 0; c < kPanelN; ++c) half[c] = core::encode_bf16(values[c]);
  }
  std::memcpy(out, half, static_cast<size_t>(cols) * sizeof(uint16_t));
}

}  // namespace

void store_tile(const KernelTable& table, const core::ResolvedProblem& problem,
                const Buffers& buffers, const core::RowGroup& group, int64_t row, int rows,
                int64_t panel, const float* values) noexcept {
  const core::ResolvedMatrix& d = problem.d;
  const int64_t col = panel * kPanelN;
  const int cols = static_cast<int>(d.cols - col < kPanelN ? d.cols - col : kPanelN);
  uint8_t* out =
      static_cast<uint8_t*>(buffers.d) +
      core::bytes_of(d.type, group.a_batch * d.batch_stride + (group.row_begin + row) * d.ld + col);
  if (d.type != DataType::kE2M1) {
    for (int r = 0; r < rows; ++r, out += d.row_bytes())
      store_row(table, d.type, values + r * kPanelN, out, cols);
    return;
  }
  const ScaleMap map = d.scale_map();
  uint8_t* scales = buffers.d_scales + group.a_batch * d.scale_batch_stride;
  const float quantize = core::global_scale_given(buffers.d_global_scale).quantize;
  for (int r = 0; r < rows; ++r, out += d.row_bytes())
    scales[map(group.d_sf_row_begin + row + r, panel)] =
        core::quantize_block(values + r * kPanelN, quantize, out);
}

}  // namespace dualgemm::cpu
