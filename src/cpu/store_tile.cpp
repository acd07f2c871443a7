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
  // In place: a copy of what was just stored through a mask waits for the store.
  if (type == DataType::kF16 && cols == kPanelN)
    return table.f32_to_f16(values, reinterpret_cast<uint16_t*>(out), cols);
  uint16_t half[kPanelN];
  if (type == DataType::kF16) {
    table.f32_to_f16(values, half, kPanelN);
  } else {
    for (int c = 0; c < kPanelN; ++c) half[c] = core::encode_bf16(values[c]);
  }
  std::memcpy(out, half, static_cast<size_t>(cols) * sizeof(uint16_t));
}

int64_t element_offset(const core::ResolvedMatrix& d, const DTile& tile) noexcept {
  return tile.group->a_batch * d.batch_stride + (tile.group->row_begin + tile.row) * d.ld +
         tile.col;
}

float load_element(DataType type, const void* data, int64_t index) noexcept {
  if (type == DataType::kF32) return static_cast<const float*>(data)[index];
  const uint16_t half = static_cast<const uint16_t*>(data)[index];
  return type == DataType::kF16 ? core::decode_f16(half) : core::decode_bf16(half);
}

}  // namespace

void add_residual(const core::ResolvedProblem& problem, const Buffers& buffers, const DTile& tile,
                  float* values) noexcept {
  const core::ResolvedMatrix& d = problem.d;
  int64_t at = element_offset(d, tile);
  for (int r = 0; r < tile.rows; ++r, at += d.ld, values += kPanelN) {
    for (int c = 0; c < tile.cols; ++c) values[c] += load_element(d.type, buffers.residual, at + c);
  }
}

void ask_for_tile(const core::ResolvedProblem& problem, const Buffers& buffers,
                  const DTile& tile) noexcept {
  const core::ResolvedMatrix& d = problem.d;
  const int64_t row_bytes = d.row_bytes(), bytes = core::bytes_of(d.type, tile.cols);
  const uint8_t* row =
      static_cast<const uint8_t*>(buffers.d) + core::bytes_of(d.type, element_offset(d, tile));
  for (int r = 0; r < tile.rows; ++r, row += row_bytes) {
    for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 1, 3);
  }
}

void store_tile(const KernelTable& table, const core::ResolvedProblem& problem,
                const Buffers& buffers, const DTile& tile, const float* values) noexcept {
  const core::ResolvedMatrix& d = problem.d;
  uint8_t* out = static_cast<uint8_t*>(buffers.d) + core::bytes_of(d.type, element_offset(d, tile));
  if (d.type != DataType::kE2M1) {
    for (int r = 0; r < tile.rows; ++r, out += d.row_bytes())
      store_row(table, d.type, values + r * kPanelN, out, tile.cols);
    return;
  }
  const ScaleMap map = d.scale_map();
  uint8_t* scales = buffers.d_scales + tile.group->a_batch * d.scale_batch_stride;
  const float quantize = core::global_scale_given(buffers.d_global_scale).quantize;
  for (int r = 0; r < tile.rows; ++r, out += d.row_bytes())
    scales[map(tile.group->d_sf_row_begin + tile.row + r, tile.col / kSfVec)] =
        core::quantize_block(values + r * kPanelN, quantize, out);
}

}  // namespace dualgemm::cpu
