// fp32, fp16 or bf16 to NVFP4 and back. Two passes over x: the largest magnitude (which also finds
// NaN and infinity, before anything is written), then the blocks. docs/formats.md, "Quantisation
// recipe".
#include "core/quantize_block.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "core/arguments.hpp"
#include "core/half.hpp"
#include "core/team.hpp"
#include "core/usable_cores.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm {
namespace {

constexpr int32_t kInfinityBits = 0x7F800000;

struct Source {
  const void* x;
  int64_t rows, cols, ld;
  int64_t blocks_per_row() const noexcept { return cols / kSfVec; }
  int64_t blocks() const noexcept { return rows * blocks_per_row(); }
};

// x may lie anywhere in a mapped file: no alignment is assumed.
template <DataType kType>
void load_block(const Source& source, int64_t row, int64_t block, float* out) noexcept {
  const int64_t index = row * source.ld + block * kSfVec;
  if constexpr (kType == DataType::kF32) {
    std::memcpy(out, static_cast<const char*>(source.x) + index * 4, kSfVec * 4);
  } else {
    uint16_t raw[kSfVec];
    std::memcpy(raw, static_cast<const char*>(source.x) + index * 2, sizeof(raw));
    for (int i = 0; i < kSfVec; ++i) {
      out[i] = kType == DataType::kF16 ? core::decode_f16(raw[i]) : core::decode_bf16(raw[i]);
    }
  }
}

// A unit, and what a thread must find to do at least: below, waking it costs more than it saves.
constexpr int64_t kUnitBlocks = 256;

// Calls body(row, block) for the blocks of a unit; rows may be few and long or many and short.
template <class Body>
void for_blocks_of(const Source& source, int64_t unit, const Body& body) {
  const int64_t begin = unit * kUnitBlocks;
  const int64_t count = std::min(kUnitBlocks, source.blocks() - begin);
  int64_t row = begin / source.blocks_per_row(), block = begin % source.blocks_per_row();
  for (int64_t i = 0; i < count; ++i) {
    body(row, block);
    if (++block == source.blocks_per_row()) block = 0, ++row;
  }
}

int64_t units_of(const Source& source) noexcept {
  return (source.blocks() + kUnitBlocks - 1) / kUnitBlocks;
}

Expected<int> thread_count(int requested, int64_t blocks) {
  const Expected<int> wanted = requested == 0 ? core::default_threads() : Expected<int>(requested);
  if (!wanted) return wanted;
  return static_cast<int>(std::clamp<int64_t>(blocks / kUnitBlocks, 1, *wanted));
}

template <DataType kType>
int32_t amax_bits(core::Team& team, const Source& source) noexcept {
  std::atomic<int32_t> amax{0};
  team.run(units_of(source), [&](int64_t unit, int) {
    int32_t largest = 0;
    for_blocks_of(source, unit, [&](int64_t row, int64_t block) {
      float x[kSfVec];
      load_block<kType>(source, row, block, x);
      largest = std::max(largest, std::bit_cast<int32_t>(core::detail::block_amax(x)));
    });
    int32_t known = amax.load(std::memory_order_relaxed);
    while (known < largest &&
           !amax.compare_exchange_weak(known, largest, std::memory_order_relaxed)) {
    }
  });
  return amax.load(std::memory_order_relaxed);
}

// The first in row-major order, whatever thread met one.
template <DataType kType>
Status not_finite(const Source& source) {
  for (int64_t row = 0; row < source.rows; ++row) {
    for (int64_t block = 0; block < source.blocks_per_row(); ++block) {
      float x[kSfVec];
      load_block<kType>(source, row, block, x);
      for (int i = 0; i < kSfVec; ++i) {
        if (std::isfinite(x[i])) continue;
        const char* value = std::isnan(x[i]) ? "NaN" : x[i] > 0 ? "+infinity" : "-infinity";
        return Status::invalid("x",
                               std::string(value) + " at row " + std::to_string(row) + ", column " +
                                   std::to_string(block * kSfVec + i),
                               "must be finite");
      }
    }
  }
  return Status::error(StatusCode::kInternal, "x", "changed while it was read",
                       "must stay the same");
}

struct Target {
  uint8_t* codes;
  int64_t ld_bytes;
  uint8_t* scales;
  ScaleMap map;
};

template <DataType kType, bool kFourOverSix>
void quantize_blocks(core::Team& team, const Source& source, const Target& target,
                     float quantize) noexcept {
  team.run(units_of(source), [&](int64_t unit, int) {
    for_blocks_of(source, unit, [&](int64_t row, int64_t block) {
      float x[kSfVec];
      load_block<kType>(source, row, block, x);
      uint8_t* codes = target.codes + row * target.ld_bytes + block * (kSfVec / 2);
      target.scales[target.map(row, block)] =
          kFourOverSix ? core::quantize_block_four_over_six(x, quantize, codes)
                       : core::quantize_block(x, quantize, codes);
    });
  });
}

template <DataType kType>
Expected<float> quantize_typed(const Source& source, const Target& target,
                               const QuantizeOptions& options) {
  const Expected<int> threads = thread_count(options.threads, source.blocks());
  if (!threads) return threads.status();
  core::Team team(*threads);
  const int32_t amax = amax_bits<kType>(team, source);
  if (amax >= kInfinityBits) return not_finite<kType>(source);
  const core::GlobalScale global = options.global_scale == 0.0f
                                       ? core::global_scale_of_amax(std::bit_cast<float>(amax))
                                       : core::global_scale_given(options.global_scale);
  if (target.map.layout() == ScaleLayout::kSwizzled128x4 && !target.map.is_exhaustive()) {
    std::memset(target.scales, 0, static_cast<size_t>(target.map.required_span_size()));
  }
  if (options.four_over_six) {
    quantize_blocks<kType, true>(team, source, target, global.quantize);
  } else {
    quantize_blocks<kType, false>(team, source, target, global.quantize);
  }
  return global.dequantize;
}

Status check_options(DataType x_type, const QuantizeOptions& options) {
  if (x_type != DataType::kF16 && x_type != DataType::kBF16 && x_type != DataType::kF32) {
    return Status::invalid("x_type", name_of(x_type), "must be f16, bf16 or f32");
  }
  if (!std::isfinite(options.global_scale) || options.global_scale < 0.0f) {
    return Status::invalid("global_scale", std::to_string(options.global_scale),
                           "must be finite and positive, or 0 to derive it from x");
  }
  return core::check_not_negative("threads", options.threads);
}

// What the two directions share: a matrix in a wide type and the same matrix as NVFP4.
struct Spans {
  int64_t wide_bytes, code_bytes, scale_bytes;
};

Expected<Spans> checked_spans(const char* ld_argument, int64_t rows, int64_t cols, int64_t ld,
                              int64_t element_bytes, int64_t ldc_bytes, const ScaleMap& map) {
  const Expected<int64_t> wide = core::checked_row_span(ld_argument, rows, cols, ld);
  if (!wide) return wide.status();
  const Expected<int64_t> wide_bytes = core::checked_product(ld_argument, *wide, element_bytes);
  if (!wide_bytes) return wide_bytes.status();
  const Expected<int64_t> code_bytes =
      core::checked_row_span("ldc_bytes", rows, cols / 2, ldc_bytes);
  if (!code_bytes) return code_bytes.status();
  return Spans{*wide_bytes, *code_bytes, map.required_span_size()};
}

Status check_buffers(const Spans& spans, const char* wide_argument, const void* wide,
                     const void* codes, const void* scales) {
  DUALGEMM_TRY(core::check_pointer(wide_argument, wide, spans.wide_bytes));
  DUALGEMM_TRY(core::check_pointer("codes", codes, spans.code_bytes));
  DUALGEMM_TRY(core::check_pointer("scales", scales, spans.scale_bytes));
  DUALGEMM_TRY(core::check_disjoint("codes", codes, spans.code_bytes, wide_argument, wide,
                                    spans.wide_bytes));
  DUALGEMM_TRY(core::check_disjoint("scales", scales, spans.scale_bytes, wide_argument, wide,
                                    spans.wide_bytes));
  return core::check_disjoint("scales", scales, spans.scale_bytes, "codes", codes,
                              spans.code_bytes);
}

}  // namespace

Expected<float> quantize_nvfp4(const void* x, DataType x_type, int64_t rows, int64_t cols,
                               int64_t ldx, uint8_t* codes, int64_t ldc_bytes, uint8_t* scales,
                               const QuantizeOptions& options) {
  DUALGEMM_TRY(check_options(x_type, options));
  DUALGEMM_TRY(core::check_not_negative("rows", rows));
  DUALGEMM_TRY(core::check_multiple("cols", cols, kSfVec));
  const Source source{x, rows, cols, ldx == 0 ? cols : ldx};
  const int64_t ldc = ldc_bytes == 0 ? cols / 2 : ldc_bytes;
  const Expected<ScaleMap> map = core::checked_scale_map("scale_ld", options.scale_layout, rows,
                                                         cols / kSfVec, options.scale_ld);
  if (!map) return map.status();
  const int64_t element_bytes = x_type == DataType::kF32 ? 4 : 2;
  const Expected<Spans> spans =
      checked_spans("ldx", rows, cols, source.ld, element_bytes, ldc, *map);
  if (!spans) return spans.status();
  DUALGEMM_TRY(check_buffers(*spans, "x", x, codes, scales));
  if (source.blocks() == 0) return options.global_scale == 0.0f ? 1.0f : options.global_scale;
  const Target target{codes, ldc, scales, *map};
  switch (x_type) {
    case DataType::kF16:
      return quantize_typed<DataType::kF16>(source, target, options);
    case DataType::kBF16:
      return quantize_typed<DataType::kBF16>(source, target, options);
    default:
      return quantize_typed<DataType::kF32>(source, target, options);
  }
}

Status dequantize_nvfp4(const uint8_t* codes, int64_t ldc_bytes, const uint8_t* scales,
                        ScaleLayout scale_layout, int64_t scale_ld, float global_scale,
                        int64_t rows, int64_t cols, float* out, int64_t ld_out) {
  DUALGEMM_TRY(core::check_not_negative("rows", rows));
  DUALGEMM_TRY(core::check_multiple("cols", cols, kSfVec));
  const int64_t ldc = ldc_bytes == 0 ? cols / 2 : ldc_bytes, ld = ld_out == 0 ? cols : ld_out;
  const Expected<ScaleMap> map =
      core::checked_scale_map("scale_ld", scale_layout, rows, cols / kSfVec, scale_ld);
  if (!map) return map.status();
  const Expected<Spans> spans = checked_spans("ld_out", rows, cols, ld, sizeof(float), ldc, *map);
  if (!spans) return spans.status();
  DUALGEMM_TRY(check_buffers(*spans, "out", out, codes, scales));
  if (cols == 0) return Status();  // of empty rows there may be 2^63
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t block = 0; block < cols / kSfVec; ++block) {
      const float scale = core::decode_scale(scales[(*map)(row, block)]);
      const uint8_t* pairs = codes + row * ldc + block * (kSfVec / 2);
      float* values = out + row * ld + block * kSfVec;
      for (int64_t i = 0; i < kSfVec / 2; ++i) {
        values[2 * i] =
            core::decode_e2m1(pairs[i]) * scale * global_scale;  // code * scale is exact
        values[2 * i + 1] = core::decode_e2m1(pairs[i] >> 4) * scale * global_scale;
      }
    }
  }
  return Status();
}

}  // namespace dualgemm
