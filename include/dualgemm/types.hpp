// The vocabulary of the library: element types, scale layouts, activations, Problem (what to
// compute), Buffers (where it lies) and Plan (how it will run).
//
//   D[l] = act(alpha_gate * A[l] * Gate[l]^T + bias_gate[l])
//          (*) (alpha_up * A[l] * Up[l]^T + bias_up[l])
//   A: m x k    Gate, Up: n x k    D: m x n    all row-major, k (for D: n) contiguous
//   bias_gate, bias_up: n, the same for each row; optional
//
// Sizes, strides and leading dimensions count elements unless the name ends in _bytes; scale
// strides count scales (1 byte each).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dualgemm/enums.h"
#include "dualgemm/status.hpp"

namespace dualgemm {

inline constexpr int64_t kSfVec = 16;  // neighbours along k that share one E4M3 scale

// The enums: what each enumerator means stands in the tables of enums.h.
enum class DataType : int32_t { DUALGEMM_DATA_TYPE_TABLE(DUALGEMM_CPP_ENUMERATOR) };
enum class ScaleLayout : int32_t { DUALGEMM_SCALE_LAYOUT_TABLE(DUALGEMM_CPP_ENUMERATOR) };
enum class ActivationKind : int32_t { DUALGEMM_ACTIVATION_TABLE(DUALGEMM_CPP_ENUMERATOR) };
enum class Combine : int32_t { DUALGEMM_COMBINE_TABLE(DUALGEMM_CPP_ENUMERATOR) };
enum class Grouping : int32_t { DUALGEMM_GROUPING_TABLE(DUALGEMM_CPP_ENUMERATOR) };
enum class StrategyId : int32_t { DUALGEMM_STRATEGY_TABLE(DUALGEMM_CPP_ENUMERATOR) };
enum class DeviceKind : int32_t { DUALGEMM_DEVICE_TABLE(DUALGEMM_CPP_ENUMERATOR) };
enum class Isa : int32_t { DUALGEMM_ISA_TABLE(DUALGEMM_CPP_ENUMERATOR) };
enum class BiasType : int32_t { DUALGEMM_BIAS_TABLE(DUALGEMM_CPP_ENUMERATOR) };
enum class Regime : int32_t { DUALGEMM_REGIME_TABLE(DUALGEMM_CPP_ENUMERATOR) };

// What prepare() is to a plan: nothing, something that saves work on every call, or demanded.
enum class Preparation : int32_t { DUALGEMM_PREPARATION_TABLE(DUALGEMM_CPP_ENUMERATOR) };

// The order of prepared weights in memory, which decides the plans that they fit.
enum class PreparedFormat : int32_t { DUALGEMM_PREPARED_FORMAT_TABLE(DUALGEMM_CPP_ENUMERATOR) };

// The two SwiGLU kinds have parameters. One that is not given has the kind's default:
//
//                     alpha    beta    limit
//   kClampedSwiglu    1        0       must be given
//   kSwigluOai        1.702    1       7
//
// so {.kind = ActivationKind::kSwigluOai} is gpt-oss's activation. What is given counts: alpha
// finite and not 0, beta finite, limit > 0 (+infinity: no clamping). Any other kind takes no
// parameters: given ones must be 1, 0 and +infinity, which change nothing (validate() refuses the
// rest, because a parameter that is silently ignored is a wrong result). == compares what was
// given, not what it amounts to.
struct Activation {
  ActivationKind kind = ActivationKind::kSilu;
  std::optional<float> alpha = {};
  std::optional<float> beta = {};
  std::optional<float> limit = {};

  static Activation silu() { return {}; }
  static Activation clamped_swiglu(float limit) {
    return {.kind = ActivationKind::kClampedSwiglu, .limit = limit};
  }
  static Activation swiglu_oai(std::optional<float> alpha = {}, std::optional<float> beta = {},
                               std::optional<float> limit = {}) {
    return {ActivationKind::kSwigluOai, alpha, beta, limit};
  }
  bool operator==(const Activation&) const = default;
};

// How one operand lies in memory. 0 in any stride means "tight".
struct Matrix {
  DataType type = DataType::kE2M1;
  int64_t ld = 0;            // elements between rows; tight = columns. kE2M1: even
  int64_t batch_stride = 0;  // elements between batches; tight = rows*ld. kE2M1: even
  ScaleLayout scale_layout = ScaleLayout::kLinear;  // kE2M1 only
  int64_t scale_ld =
      0;  // kLinear: scales between rows; tight = columns/16. kSwizzled128x4: must be 0
  int64_t scale_batch_stride = 0;  // scales between batches; tight = the layout's required span
  bool operator==(const Matrix&) const = default;
};

// kContiguous with swizzled scales of A or D: expert e's scale rows start at the sum over the
// experts before it of round_up(rows, 128), as vLLM and FlashInfer lay them out. Batch strides of A
// and D must then be 0. Padding of D's swizzled scales becomes 0, but for masked experts without
// rows, whose scales stay as they are.

struct Problem {
  int64_t m = 0;  // rows of A and D (kContiguous: in total)
  int64_t n = 0;  // rows of Gate and of Up, columns of D
  int64_t k = 0;  // columns of A, Gate, Up; a multiple of 16
  int64_t l = 1;  // batches or experts
  Matrix a{};
  Matrix gate{};                     // always kE2M1
  Matrix up{};                       // always kE2M1
  Matrix d{.type = DataType::kF16};  // kE2M1: quantised in the epilogue with
                                     // Buffers::d_global_scale; n % 16 == 0
  Activation act{};
  Grouping grouping = Grouping::kNone;
  bool batch_invariant = false;     // bits of row i depend on neither m nor the instruction set
  BiasType bias = BiasType::kNone;  // of Buffers::bias_gate and bias_up, both
  int64_t bias_stride = 0;          // elements from one batch's bias to the next; tight = n
  // kSideBySide: two products that share A, without an activation. D has up_column + n columns:
  //   D[:, 0 .. up_column)  = the first up_column columns of alpha_gate * A * Gate^T + bias_gate
  //   D[:, up_column .. up_column + n) = alpha_up * A * Up^T + bias_up
  // 0 <= up_column <= n, and a multiple of 16 where D is kE2M1. act must be the default. This is
  // what linear.hpp makes of one product: Gate and Up are the halves of its weights.
  // kActivatedSideBySide: the same of act(...) of both, before the residual. act(g) is the factor
  // of act that g alone gives; the SwiGLU kinds, whose formula is one of two products, are refused.
  Combine combine = Combine::kGlu;
  int64_t up_column = 0;  // kGlu: 0
  // Side by side: Buffers::residual is added, in FP32 and last. d is not kE2M1.
  bool residual = false;
  // kContiguous: A has so many rows, at least 1, and row i of the products is row
  // Buffers::a_row_index[i] of them, as a token's is of several experts. Scales of A, swizzled
  // ones, too, are those of one matrix. 0: A has m rows, in order.
  int64_t a_rows = 0;
  bool operator==(const Problem&) const = default;
};

// Prepared weights are bytes: l parts of the same size, one for each expert (or batch), one after
// the other. A part is a header of kPreparedHeaderBytes, which says what follows, and the expert's
// Gate and Up. There is no address in it and nothing that depends on the machine, on threads or on
// the other parts: bytes may be copied, saved, cut into parts and put together from parts.
// docs/formats.md, "Prepared weights", has every byte.
inline constexpr int64_t kPreparedHeaderBytes = 256;

// What such bytes are; a plain value.
struct PreparedDescriptor {
  PreparedFormat format = PreparedFormat::kNone;
  int32_t version = 0;  // of the format
  int64_t n = 0, k = 0;
  int64_t l = 0;             // parts
  int64_t expert_bytes = 0;  // of a part, header included
  int64_t bytes = 0;         // of all: l * expert_bytes
  int64_t alignment = 0;     // of the address: 64 for a CPU's formats, 256 for a GPU's
  // Columns of D where Gate and Up were cut from one matrix (kSideBySide; n of linear.hpp). n alone
  // does not say them: matrices of 48 and of 64 rows both have halves of 32. 0: a gated product.
  int64_t columns = 0;

  // Where the part of one expert begins.
  int64_t expert_offset(int64_t expert) const noexcept { return expert * expert_bytes; }
  bool operator==(const PreparedDescriptor&) const = default;
};

// Such bytes in memory of the caller's, for Buffers::prepared_view; a plain value.
struct PreparedView {
  PreparedDescriptor descriptor;
  const void* memory = nullptr;  // of the host, or for a GPU's formats of the GPU
  int64_t bytes = 0;             // that lie there; at least descriptor.bytes
  bool operator==(const PreparedView&) const = default;
};

class PreparedWeights;

// Where the operands lie; for a plan on the device kCuda all pointers are device memory, and run()
// enqueues and returns. The library reads no byte of padding for its value and writes nothing but
// D (and d_scales).
struct Buffers {
  const void* a = nullptr;
  const uint8_t* a_scales = nullptr;  // E4M3; required when A is kE2M1, else null
  const float* a_row_scale =
      nullptr;                 // optional, one FP32 factor per row of A: [l*m], kContiguous [m]
  const void* gate = nullptr;  // null is legal when prepared weights are given
  const uint8_t* gate_scales = nullptr;
  const void* up = nullptr;
  const uint8_t* up_scales = nullptr;
  float alpha_gate = 1.0f;  // dequantising global scale of A times that of Gate
  float alpha_up = 1.0f;
  const float* alpha_gate_per_batch = nullptr;  // optional [l]; replaces alpha_gate
  const float* alpha_up_per_batch = nullptr;    // optional [l]; replaces alpha_up
  // expert_offsets, for kContiguous: [l+1], first 0, last at most m, non-decreasing; rows from the
  // last offset on belong to no expert and are neither read nor written. expert_rows, for kMasked:
  // [l], each 0 .. m. kCuda: both are read on the device when the kernels run. Invalid numbers are
  // clamped there, so that no access leaves the arrays, if swizzled scales of A are as large as
  // operand_sizes() says.
  const int32_t* expert_offsets = nullptr;
  const int32_t* expert_rows = nullptr;
  void* d = nullptr;
  uint8_t* d_scales = nullptr;  // required when D is kE2M1, else null
  float d_global_scale = 1.0f;  // dequantising: D = e2m1 * e4m3 * d_global_scale; finite, > 0
  // Prepared weights, in one of two ways: a handle, or bytes of the caller's, which are read until
  // the run has passed. Their descriptor must be prepared_descriptor(plan): m may be another one
  // than they were made for, and so may the strategy or the ISA, if the format is the same.
  const PreparedWeights* prepared = nullptr;
  const PreparedView* prepared_view = nullptr;
  void* stream = nullptr;  // kCuda: the cudaStream_t to enqueue on; null: the default stream
  // Required when the problem has a bias, else null: [l][n] numbers of Problem::bias, one after the
  // other, at a multiple of their size. Added in one FP32 addition to alpha * row scale * product,
  // before the activation. NaN and infinity go into D as that addition and the activation make
  // them.
  const void* bias_gate = nullptr;
  const void* bias_up = nullptr;
  // Required when the problem has a residual, else null: laid out as D is, of its type. It may be D
  // itself; else it must not overlap it.
  const void* residual = nullptr;
  // kContiguous, instead of expert_offsets: [m], the expert of each row. A row with -1, or any
  // other number outside 0 .. l-1, belongs to no expert and is skipped: what it holds does not
  // matter, and nothing of it is written. Swizzled scales of A and D are then those of one matrix
  // of m rows. Rows of one expert should follow each other: a tile does not cross from one expert
  // to another.
  const int32_t* row_experts = nullptr;
  // Required when the problem has a_rows, else null: [m], each 0 .. a_rows - 1, also of rows of no
  // expert. kCuda: cut to that range. a_row_scale is of the products' rows, [m], all the same.
  const int32_t* a_row_index = nullptr;
};

// Names as the command line spells them ("e2m1", "swizzled_128x4", "swiglu_oai", "two_pass",
// "avx512_vnni", ...); never null.
const char* name_of(DataType) noexcept;
const char* name_of(ScaleLayout) noexcept;
const char* name_of(ActivationKind) noexcept;
const char* name_of(Combine) noexcept;
const char* name_of(Grouping) noexcept;
const char* name_of(StrategyId) noexcept;
const char* name_of(DeviceKind) noexcept;
const char* name_of(Isa) noexcept;
const char* name_of(BiasType) noexcept;
const char* name_of(Regime) noexcept;
const char* name_of(Preparation) noexcept;
const char* name_of(PreparedFormat) noexcept;

// The inverse of name_of; the error lists the legal names.
Expected<DataType> parse_data_type(const std::string& name);
Expected<ScaleLayout> parse_scale_layout(const std::string& name);
Expected<ActivationKind> parse_activation(const std::string& name);
Expected<Combine> parse_combine(const std::string& name);
Expected<Grouping> parse_grouping(const std::string& name);
Expected<BiasType> parse_bias(const std::string& name);
Expected<StrategyId> parse_strategy(const std::string& name);
Expected<DeviceKind> parse_device(const std::string& name);
Expected<Isa> parse_isa(const std::string& name);

// What the machine offers; a pure input of make_plan, so plans can be tested for machines that are
// not there.
struct DeviceCaps {
  DeviceKind kind = DeviceKind::kCpu;
  std::string name;       // as the operating system calls it
  std::vector<Isa> isas;  // supported here, best first; always ends in kScalar
  int cores = 1;          // available to this process (affinity mask and cgroup quota respected)
  int64_t l1d_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;  // per core
  int64_t l3_bytes = 0;          // shared; 0 = unknown or none
  int compute_capability = 0;    // kCuda: 10 * major + minor
  int num_sms = 0;               // kCuda: streaming multiprocessors
  // kCuda: clusters of two CTAs that run at once, each CTA on an SM of its own; -1: not known, so
  // half of num_sms is taken for it.
  int max_pairs = -1;
};

struct PlanOptions {
  StrategyId strategy = StrategyId::kAuto;
  DeviceKind device = DeviceKind::kAuto;
  Isa isa = Isa::kAuto;  // kAuto: on the CPU DUALGEMM_FORCE_ISA if set, else the device's best
  // 0: as many as pay for a call of this size, at most one for each core of the calling thread's
  // affinity mask and the control group's quota, at most DUALGEMM_NUM_THREADS or, where that is not
  // set, OMP_NUM_THREADS. Any other number is taken as it is. The result does not depend on it.
  int threads = 0;
  bool prepared = false;  // the caller will pass prepared weights
  // kCuda: operands may start at any address, so there must be workspace for copies of all of them.
  // Otherwise those that are read in place must start at a multiple of 16 bytes; for sm90a's kernel
  // for few rows, which only false can choose: codes of A at 8, halves and weights at 16, scales of
  // the weights at 4. Where weights were before prepare() does not matter.
  bool unaligned = false;
  // kCuda: what to run instead of the library's own choice. Either what Plan::config() says, word
  // for word, or some of these, separated by commas; what is not named is chosen as without them:
  //   strategy, isa       as the options above
  //   kernel              "skinny", ...: Plan::kernel
  //   tile_m, tile_n, tile_k, stages, k_warpgroups     with kernel: must name a compiled one
  //   ctas                at most so many; sm90a, groups and persistent pairs on sm100a, and sm80:
  //                       up to 32 rows they take whole tiles in turns; above, without groups or
  //                       batch_invariant, likewise with k_warpgroups=1, else equal shares
  std::string config = {};
  // kCuda: run() does not ask the driver where its pointers and its stream belong. The caller
  // answers for them; docs/cuda.md, "Bad input on CUDA", has the cost of asking.
  bool trusted_pointers = false;
};

// A kernel of a GPU; which ones there are only the library knows.
enum class KernelId : int32_t;

struct RejectedCandidate {
  std::string name;  // strategy, or "isa:..." / "device:..."
  Status reason;
};

// The numbers of the kernel that a plan runs; 0: that kernel has no such number.
struct KernelShape {
  int64_t tile_m = 0;  // rows of A per tile
  int64_t tile_n = 0;  // columns of D per tile: so many of Gate and of Up
  int64_t tile_k = 0;  // elements along k that are decoded at a time (kCuda: that a stage holds)
  int64_t stages = 0;  // kCuda: tiles along k in flight between memory and tensor core
  // kCuda: what k is divided between: warpgroups that take turns (wgmma); warps or CTAs (mma.sync;
  // 0 where CTAs have equal shares of tiles)
  int64_t k_warpgroups = 0;
  int64_t ctas = 0;      // kCuda: CTAs of a grid that share the work; 0: it follows from the tiles
  int64_t l2_rows = 0;   // kCpu: rows of A whose tiles stay in L2 while panels pass by
  int64_t l2_pairs = 0;  // kCpu: panel pairs that share one pass over those rows
  bool operator==(const KernelShape&) const = default;
};

// How a problem will run: a value, printable, comparable by its config(). A function of (Problem,
// DeviceCaps, PlanOptions) alone.
struct Plan {
  Problem problem;
  StrategyId strategy = StrategyId::kFused;
  DeviceKind device = DeviceKind::kCpu;
  Isa isa = Isa::kScalar;
  Regime regime = Regime::kTile;
  int threads = 1;
  bool prepared = false;
  bool unaligned = false;         // PlanOptions::unaligned
  bool trusted_pointers = false;  // PlanOptions::trusted_pointers
  // kCuda: "wgmma", "skinny" (few rows of A), "skinnypersistent", "tcgen05", "tcgen05pair",
  // "tcgen05persistent", "w4a16", "w4a16persistent", "mma", "mmanvf4", "cublaslt", "cutlass",
  // "cutlassvisitor". kCpu: the name of its regime, or "oracle". For display; kernel_id says what
  // runs.
  std::string kernel;
  KernelId kernel_id{};  // kCuda; kCpu: 0
  KernelShape shape;
  Preparation preparation = Preparation::kNone;
  int64_t workspace_bytes = 0;  // demanded by run(); 64-byte aligned
  int64_t prepared_bytes = 0;   // that prepare() will fill; 0 = nothing to prepare
  std::string how_it_works;     // in the strategy's own words, for explain()
  std::string numerics;         // likewise: what is exact, and what the bits depend on
  std::vector<RejectedCandidate> rejected;

  std::string config() const;   // e.g. "cpu_avx512_vnni_fused_tile_t4x16_k512_p2"
  std::string explain() const;  // some lines: what will run and why, what was rejected and why
};

// Facts about one finished run(), for tests, benches and the curious.
struct RunInfo {
  Isa isa = Isa::kAuto;  // reported by the kernel that ran, not by the plan
  Regime regime = Regime::kTile;
  int threads = 0;  // that could take part; fewer than planned if the system gave no more
  int64_t intermediate_bytes =
      0;  // written to and read from intermediates (R1, R2, converted operands)
};

}  // namespace dualgemm
