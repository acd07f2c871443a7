// NVFP4 and back, where the data lies: on the host or, enqueued on a stream, on the current GPU.
// The bits are the same. docs/formats.md has the recipe, docs/cuda.md the launches.
//
//   // prologue: activations              (m, k, l, and where x, its codes and scales lie)
//   dualgemm::QuantizeProblem problem{.rows = m, .cols = k};
//   problem.x.type = dualgemm::DataType::kBF16;
//   problem.scaling = dualgemm::GlobalScaling::kRow;  // what Buffers::a_row_scale takes
//   dualgemm::QuantizeBuffers buffers{.x = x, .codes = codes, .scales = scales,
//                                     .found_scale = row_scale};
//   dualgemm::Status status = dualgemm::quantize(problem, buffers);  // {.device = kCuda}: on a GPU
//   if (!status.ok()) return report(status.message());
#pragma once

#include <cstdint>
#include <string>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm {

// Where the global scales come from: what each means stands in the table of enums.h.
enum class GlobalScaling : int32_t { DUALGEMM_GLOBAL_SCALING_TABLE(DUALGEMM_CPP_ENUMERATOR) };
const char* name_of(GlobalScaling) noexcept;
Expected<GlobalScaling> parse_global_scaling(const std::string& name);

// What becomes of the rows of x first, in this order, each step in FP32 and rounded to x.type:
// - factors: every column times its factor, as AWQ's pre_quant_scale wants it;
// - hadamard: each so many neighbouring columns, as a row vector, times Sylvester's Hadamard matrix
//   of that size over the square root of it: an online rotation of compressed-tensors'
//   transform_config (type "hadamard", location "input", head_dim). Sums of two neighbours come
//   first, then of neighbours 2, 4, ... apart.
struct RowTransform {
  bool factors = false;  // column_factors of the buffers
  int64_t hadamard = 0;  // 0: none; 16, 32, 64, 128 or 256, which divides the columns
  bool any() const noexcept { return factors || hadamard != 0; }
  bool operator==(const RowTransform&) const = default;
};

// A tensor x[l][rows][cols] and the same as NVFP4, q. `q` is what Problem::a takes for the same m,
// k, l and grouping.
struct QuantizeProblem {
  int64_t rows = 0;                  // of a batch, or of a masked expert; kContiguous: in total
  int64_t cols = 0;                  // a positive multiple of 16
  int64_t l = 1;                     // batches or experts
  Matrix x{.type = DataType::kF16};  // kF16, kBF16 or kF32
  Matrix q{};                        // kE2M1
  Grouping grouping = Grouping::kNone;
  GlobalScaling scaling = GlobalScaling::kTensor;
  // quantize(): for each block also try amax/4, keep the lower sum of |x*G - code*s| (ties: amax/6)
  bool four_over_six = false;
  RowTransform transform{};  // quantize()
  bool operator==(const QuantizeProblem&) const = default;
};

// Bytes that each array must have, from its first to one past the last byte used.
struct QuantizeSizes {
  int64_t x = 0, codes = 0;
  int64_t scales = 0;  // contiguous, swizzled: suffices however the rows fall to the experts
  int64_t global_scale = 0;
  int64_t workspace = 0;  // kCuda, kTensor; 0: none is needed
};

// Which rows there are, for groups. On kCuda this is device memory that kernels read: the host
// does not, and a graph may be replayed with other numbers. Numbers out of range are cut to
// 0 .. rows there, and no byte outside of the arrays is touched; the CPU refuses them.
struct RowGroupArrays {
  const int32_t* expert_rows = nullptr;     // kMasked: [l], each 0 .. rows
  const int32_t* expert_offsets = nullptr;  // kContiguous: [l+1], first 0, last rows, not falling
  // kContiguous, instead of offsets: [rows], the expert of each row. A row with -1, or any other
  // number outside 0 .. l-1, belongs to no expert and is skipped. Swizzled scales are those of one
  // matrix then.
  const int32_t* row_experts = nullptr;
};

// For kCuda all pointers are device memory, x (and found scales) at a multiple of an element's
// bytes. The outputs must overlap nothing that is read or written beside them.
struct QuantizeBuffers {
  const void* x = nullptr;
  uint8_t* codes = nullptr;
  uint8_t* scales = nullptr;
  const float* global_scale = nullptr;  // read: kGiven [1], kGivenPerBatch [l]; else null
  float* found_scale = nullptr;         // written: kTensor [1], kRow [l][rows]; else null
  RowGroupArrays groups{};
  const float* column_factors = nullptr;  // transform.factors: [cols], of all batches; else null
  void* workspace = nullptr;  // QuantizeSizes::workspace bytes, aligned to 64; null where 0
  int64_t workspace_bytes = 0;
  void* stream = nullptr;  // kCuda: the cudaStream_t to enqueue on; null: the default stream
};

struct DequantizeBuffers {
  const uint8_t* codes = nullptr;
  const uint8_t* scales = nullptr;
  const float* global_scale = nullptr;  // read: [1], kGivenPerBatch [l], kRow [l][rows]
  void* x = nullptr;
  RowGroupArrays groups{};
  void* stream = nullptr;
};

// How a call runs.
struct ExecutionOptions {
  DeviceKind device = DeviceKind::kAuto;  // kAuto: the CPU
  int threads = 0;                // CPU; 0 = all usable cores. The result does not depend on it
  bool trusted_pointers = false;  // kCuda: as PlanOptions::trusted_pointers
};

// Every rule that needs no address: shapes, types, strides, overflow.
Status validate(const QuantizeProblem& problem);
// And of the numbers of groups, which it reads: host memory. The CPU's calls do so by themselves;
// on a GPU calls do not check the numbers, and kernels clamp what is invalid.
Status validate(const QuantizeProblem& problem, const RowGroupArrays& groups);
// `device`: only the workspace depends on it.
Expected<QuantizeSizes> quantize_sizes(const QuantizeProblem& problem,
                                       DeviceKind device = DeviceKind::kAuto);

// x -> codes, scales and, where it is found, the global scale g; docs/formats.md, "Quantisation
// recipe": value = e2m1 * e4m3 * g. One launch on kCuda, two for kTensor. Rows that no group has
// are neither read nor written, nor are their scales; what lies between rows is not touched;
// swizzled padding becomes 0.
//
// Nothing waits for the data, so what is not finite in x is no error:
// - kGiven, kGivenPerBatch: a NaN gives its block the scale 0x7F and codes 0, so that it stays NaN;
//   an infinity saturates (scale 448, code 6). A g that is not finite and > 0 makes all that it
//   belongs to NaN; on the CPU it is an error.
// - kTensor, kRow: a NaN or an infinity makes g NaN, and NaN all blocks that it belongs to.
// quantize_nvfp4() of formats.hpp looks first, and refuses.
Status quantize(const QuantizeProblem& problem, const QuantizeBuffers& buffers,
                const ExecutionOptions& options = {});

// The inverse: (e2m1 * e4m3, exact) * g, rounded to FP32, then to x.type; every NaN is the quiet
// one without a sign or payload (0x7FC00000, 0x7E00, 0x7FC0). four_over_six and transform are of no
// account. One launch on kCuda.
Status dequantize(const QuantizeProblem& problem, const DequantizeBuffers& buffers,
                  const ExecutionOptions& options = {});

// The rows of x transformed and not quantised, for products with activations of 16 or 32 bits.
struct TransformProblem {
  int64_t rows = 0, cols = 0;  // cols: a positive multiple of 16
  int64_t l = 1;               // batches
  Matrix x{.type = DataType::kF16},
      y{.type = DataType::kF16};  // kF16, kBF16 or kF32, both the same
  RowTransform transform{};
  bool operator==(const TransformProblem&) const = default;
};
struct TransformBuffers {
  const void* x = nullptr;
  const float* column_factors = nullptr;  // as QuantizeBuffers::column_factors
  void* y = nullptr;                      // x itself, where both lie alike; else apart from it
  void* stream = nullptr;
};
// NaNs are written as by dequantize(). One launch on kCuda.
Status transform_rows(const TransformProblem& problem, const TransformBuffers& buffers,
                      const ExecutionOptions& options = {});

// How the scales of `l` batches lie; 0 in a stride means "tight".
struct ScalePlacement {
  ScaleLayout layout = ScaleLayout::kLinear;
  int64_t ld = 0;  // kLinear: scales between rows; kSwizzled128x4: must be 0
  int64_t batch_stride = 0;
  bool operator==(const ScalePlacement&) const = default;
};
struct ScaleConversion {
  int64_t rows = 0, sf_cols = 0, l = 1;  // sf_cols = k/16
  ScalePlacement from{}, to{};
  bool operator==(const ScaleConversion&) const = default;
};

// As convert_scale_layout() of formats.hpp: swizzled padding of dst becomes 0, that of src is not
// read, what lies between the rows of dst is not touched. dst must not overlap src. One launch on
// kCuda.
Status convert_scales(const ScaleConversion& conversion, const uint8_t* src, uint8_t* dst,
                      void* stream = nullptr, const ExecutionOptions& options = {});

}  // namespace dualgemm
