/**
 * @file enums.h
 * Every enumerator of the interface, in one table for each enum: the C++ enums of types.hpp and
 * status.hpp, the constants of dualgemm.h, names, range checks and help texts come from here, and
 * so may bindings.
 *
 * Format, which tests/tree/enums/table_test.py reads and keeps: a table begins with a line "#define
 * DUALGEMM_<NAME>_TABLE(X)" and has one row a line, "X(C++ name, C name, number, "name",
 * "meaning")", where the two texts are plain string literals without escapes and all lines but the
 * last end in a backslash. Numbers count from 0 without a gap. They never change; new rows are
 * added at the end.
 */
#ifndef DUALGEMM_ENUMS_H
#define DUALGEMM_ENUMS_H

/* clang-format off */

/* What went wrong: StatusCode, dualgemm_status. */
#define DUALGEMM_STATUS_TABLE(X) \
  X(kOk, DUALGEMM_OK, 0, "ok", "success") \
  X(kInvalidArgument, DUALGEMM_INVALID_ARGUMENT, 1, "invalid_argument", "an argument breaks a documented rule") \
  X(kUnsupported, DUALGEMM_UNSUPPORTED, 2, "unsupported", "legal, but this strategy, device or build cannot do it") \
  X(kOverflow, DUALGEMM_OVERFLOW, 3, "overflow", "a size does not fit in 64 bits") \
  X(kOutOfMemory, DUALGEMM_OUT_OF_MEMORY, 4, "out_of_memory", "an allocation failed") \
  X(kWorkspaceTooSmall, DUALGEMM_WORKSPACE_TOO_SMALL, 5, "workspace_too_small", "fewer bytes than the plan demands") \
  X(kNotFound, DUALGEMM_NOT_FOUND, 6, "not_found", "a file, tensor or name does not exist") \
  X(kIoError, DUALGEMM_IO_ERROR, 7, "io_error", "the operating system refused a read or a write") \
  X(kCorruptFile, DUALGEMM_CORRUPT_FILE, 8, "corrupt_file", "a file's content contradicts its format") \
  X(kInternal, DUALGEMM_INTERNAL, 9, "internal", "a bug in this library")

/* Element types: DataType. */
#define DUALGEMM_DATA_TYPE_TABLE(X) \
  X(kE2M1, DUALGEMM_E2M1, 0, "e2m1", "NVFP4: two codes a byte, low nibble = even k, one E4M3 scale per 16 codes") \
  X(kF16, DUALGEMM_F16, 1, "f16", "IEEE half precision") \
  X(kBF16, DUALGEMM_BF16, 2, "bf16", "the upper half of FP32") \
  X(kF32, DUALGEMM_F32, 3, "f32", "IEEE single precision")

/* Where the scale of (row r, block s) lies, S = k/16 blocks a row: ScaleLayout.
 *   linear          r*scale_ld + s
 *   swizzled_128x4  ((r/128)*ceil(S/4) + s/4)*512 + (r%32)*16 + ((r%128)/32)*4 + s%4 */
#define DUALGEMM_SCALE_LAYOUT_TABLE(X) \
  X(kLinear, DUALGEMM_SCALES_LINEAR, 0, "linear", "rows x k/16, row-major, as in checkpoints") \
  X(kSwizzled128x4, DUALGEMM_SCALES_SWIZZLED_128X4, 1, "swizzled_128x4", "as cuBLASLt and CUTLASS have it")

/* Activations: ActivationKind; g is the Gate product and u the Up product, each after its global
 * scale (alpha_gate, alpha_up) and bias. The two SwiGLU kinds are one formula, with the parameters
 * alpha, beta and limit of Activation:
 *   g = min(g, limit), u = clamp(u, -limit, limit); g*sigmoid(alpha*g) * (u + beta) */
#define DUALGEMM_ACTIVATION_TABLE(X) \
  X(kSilu, DUALGEMM_SILU, 0, "silu", "g*sigmoid(g) * u") \
  X(kClampedSwiglu, DUALGEMM_CLAMPED_SWIGLU, 1, "clamped_swiglu", "g*sigmoid(alpha*g) * (u + beta), clamped at limit") \
  X(kSwigluOai, DUALGEMM_SWIGLU_OAI, 2, "swiglu_oai", "clamped_swiglu, gpt-oss's way: alpha 1.702, beta 1, limit 7") \
  X(kGeluErf, DUALGEMM_GELU_ERF, 3, "gelu_erf", "0.5*g*(1 + erf(g/sqrt(2))) * u") \
  X(kGeluTanh, DUALGEMM_GELU_TANH, 4, "gelu_tanh", "0.5*g*(1 + tanh(sqrt(2/pi)*(g + 0.044715*g^3))) * u") \
  X(kRelu2, DUALGEMM_RELU2, 5, "relu2", "max(g, 0)^2 * u") \
  X(kSigmoid, DUALGEMM_SIGMOID, 6, "sigmoid", "sigmoid(g) * u") \
  X(kIdentity, DUALGEMM_IDENTITY, 7, "identity", "g * u")

/* What becomes of the two products, each with its alpha and bias: Combine. */
#define DUALGEMM_COMBINE_TABLE(X) \
  X(kGlu, DUALGEMM_COMBINE_GLU, 0, "glu", "D = act(g) * u") \
  X(kSideBySide, DUALGEMM_COMBINE_SIDE_BY_SIDE, 1, "side_by_side", "both stand in D, u from column up_column on") \
  X(kActivatedSideBySide, DUALGEMM_COMBINE_ACTIVATED_SIDE_BY_SIDE, 2, "activated_side_by_side", "side_by_side of act(g) and act(u)")

/* How the l problems share A and D: Grouping. */
#define DUALGEMM_GROUPING_TABLE(X) \
  X(kNone, DUALGEMM_GROUPING_NONE, 0, "none", "l independent problems of m rows each (batch)") \
  X(kContiguous, DUALGEMM_GROUPING_CONTIGUOUS, 1, "contiguous", "expert e owns rows expert_offsets[e] .. [e+1]-1 of m") \
  X(kMasked, DUALGEMM_GROUPING_MASKED, 2, "masked", "l batches of m rows, of which the first expert_rows[e] exist")

/* Ways of computing the same result: StrategyId. docs/architecture.md compares them. */
#define DUALGEMM_STRATEGY_TABLE(X) \
  X(kAuto, DUALGEMM_STRATEGY_AUTO, 0, "auto", "the library's choice") \
  X(kReference, DUALGEMM_STRATEGY_REFERENCE, 1, "reference", "scalar, double precision: the oracle; slow") \
  X(kTwoPass, DUALGEMM_STRATEGY_TWO_PASS, 2, "two_pass", "GEMM Gate -> R1, GEMM Up -> R2, then act(R1)*R2") \
  X(kCached, DUALGEMM_STRATEGY_CACHED, 3, "cached", "two_pass, with weights that were converted once") \
  X(kGraph, DUALGEMM_STRATEGY_GRAPH, 4, "graph", "a prepared plan replayed: no set-up in the call") \
  X(kStreams, DUALGEMM_STRATEGY_STREAMS, 5, "streams", "both GEMMs at the same time, then the epilogue") \
  X(kFusedEpilogue, DUALGEMM_STRATEGY_FUSED_EPILOGUE, 6, "fused_epilogue", "GEMM Gate -> R1, GEMM Up reads R1, writes D") \
  X(kFusedSequential, DUALGEMM_STRATEGY_FUSED_SEQUENTIAL, 7, "fused_sequential", "one call: Gate loop, Up loop, epilogue") \
  X(kFused, DUALGEMM_STRATEGY_FUSED, 8, "fused", "one pass: A read once, both accumulators in registers") \
  X(kFp8, DUALGEMM_STRATEGY_FP8, 9, "fp8", "operands re-quantised to FP8: a comparison, not exact") \
  X(kCutlass, DUALGEMM_STRATEGY_CUTLASS, 10, "cutlass", "CUDA: CUTLASS's NVFP4 GEMM over Gate and Up, in builds with it")

/* DeviceKind. */
#define DUALGEMM_DEVICE_TABLE(X) \
  X(kAuto, DUALGEMM_DEVICE_AUTO, 0, "auto", "the CPU") \
  X(kCpu, DUALGEMM_DEVICE_CPU, 1, "cpu", "the host") \
  X(kCuda, DUALGEMM_DEVICE_CUDA, 2, "cuda", "the current GPU")

/* Instruction sets: Isa. */
#define DUALGEMM_ISA_TABLE(X) \
  X(kAuto, DUALGEMM_ISA_AUTO, 0, "auto", "DUALGEMM_FORCE_ISA if set, else the best one here") \
  X(kScalar, DUALGEMM_ISA_SCALAR, 1, "scalar", "plain C++") \
  X(kAvx2, DUALGEMM_ISA_AVX2, 2, "avx2", "x86-64 with AVX2, FMA and F16C") \
  X(kAvx512Vnni, DUALGEMM_ISA_AVX512_VNNI, 3, "avx512_vnni", "x86-64 with AVX-512 and VNNI") \
  X(kAmxBf16, DUALGEMM_ISA_AMX_BF16, 4, "amx_bf16", "x86-64 with AMX tiles for bf16") \
  X(kSm100a, DUALGEMM_ISA_SM100A, 5, "sm100a", "CUDA: tcgen05 of B200 and B300") \
  X(kSm90a, DUALGEMM_ISA_SM90A, 6, "sm90a", "CUDA: wgmma of H100 and H200") \
  X(kSm80, DUALGEMM_ISA_SM80, 7, "sm80", "CUDA: any GPU of compute capability 8.0 or later; cuBLASLt") \
  X(kAvx512Bf16, DUALGEMM_ISA_AVX512_BF16, 8, "avx512_bf16", "x86-64 with AVX-512, VNNI and BF16") \
  X(kSm120a, DUALGEMM_ISA_SM120A, 9, "sm120a", "CUDA: block-scaled mma.sync of RTX 50 and DGX Spark") \
  X(kNeon, DUALGEMM_ISA_NEON, 10, "neon", "64-bit Arm with dot products of bytes (FEAT_DotProd)") \
  X(kNeonI8mm, DUALGEMM_ISA_NEON_I8MM, 11, "neon_i8mm", "64-bit Arm with matrix products of bytes too (FEAT_I8MM)")

/* Which loop nest the CPU backend runs, chosen from m: Regime. */
#define DUALGEMM_REGIME_TABLE(X) \
  X(kGemv, DUALGEMM_REGIME_GEMV, 0, "gemv", "very few rows of A") \
  X(kMultiRow, DUALGEMM_REGIME_MULTI_ROW, 1, "multi_row", "few rows of A") \
  X(kTile, DUALGEMM_REGIME_TILE, 2, "tile", "many rows of A")

/* What prepare() is to a plan: Preparation. */
#define DUALGEMM_PREPARATION_TABLE(X) \
  X(kNone, DUALGEMM_PREPARATION_NONE, 0, "none", "nothing to prepare") \
  X(kOptional, DUALGEMM_PREPARATION_OPTIONAL, 1, "optional", "saves work on every call") \
  X(kRequired, DUALGEMM_PREPARATION_REQUIRED, 2, "required", "run() takes prepared weights only")

/* The order of prepared weights in memory: PreparedFormat; docs/formats.md, "Prepared weights". It
 * decides which plans they fit. */
#define DUALGEMM_PREPARED_FORMAT_TABLE(X) \
  X(kNone, DUALGEMM_PREPARED_NONE, 0, "none", "nothing to prepare") \
  X(kCpuPanels, DUALGEMM_PREPARED_CPU_PANELS, 1, "cpu_panels", "CPU, every instruction set: NVFP4 in panels of 16 columns") \
  X(kCpuFp8, DUALGEMM_PREPARED_CPU_FP8, 2, "cpu_fp8", "CPU, every instruction set: E4M3 with a scale per row") \
  X(kSm90aF16, DUALGEMM_PREPARED_SM90A_F16, 3, "sm90a_f16", "sm_80 to sm_90a, sm_12x: NVFP4 in decoding order, a NVFP4 or fp16") \
  X(kSm90aBF16, DUALGEMM_PREPARED_SM90A_BF16, 4, "sm90a_bf16", "sm_80 to sm_90a, sm_12x: NVFP4 in decoding order, a bf16") \
  X(kGpuF16, DUALGEMM_PREPARED_GPU_F16, 5, "gpu_f16", "any GPU: decoded to fp16") \
  X(kGpuBF16, DUALGEMM_PREPARED_GPU_BF16, 6, "gpu_bf16", "any GPU: decoded to bf16") \
  X(kGpuE4M3, DUALGEMM_PREPARED_GPU_E4M3, 7, "gpu_e4m3", "any GPU: E4M3 with a scale per row") \
  X(kGpuNvfp4, DUALGEMM_PREPARED_GPU_NVFP4, 8, "gpu_nvfp4", "any GPU: NVFP4 with swizzled scales") \
  X(kSm100a, DUALGEMM_PREPARED_SM100A, 9, "sm100a", "B200, B300: NVFP4 in the order of the tensor core") \
  X(kGpuInterleaved, DUALGEMM_PREPARED_GPU_INTERLEAVED, 10, "gpu_interleaved", "any GPU: NVFP4, 128 rows of Gate and Up by turns") \
  X(kSm120a, DUALGEMM_PREPARED_SM120A, 11, "sm120a", "RTX 50, DGX Spark: NVFP4 as stages hold it, a NVFP4")

/* Whether Gate and Up have a bias, and its type: BiasType. */
#define DUALGEMM_BIAS_TABLE(X) \
  X(kNone, DUALGEMM_BIAS_NONE, 0, "none", "no bias") \
  X(kF32, DUALGEMM_BIAS_F32, 1, "f32", "one FP32 number for each row of Gate and of Up") \
  X(kBF16, DUALGEMM_BIAS_BF16, 2, "bf16", "one bf16 number for each row of Gate and of Up")

/* Where the global scales of a tensor that quantize() writes or dequantize() reads come from:
 * GlobalScaling. */
#define DUALGEMM_GLOBAL_SCALING_TABLE(X) \
  X(kGiven, DUALGEMM_SCALING_GIVEN, 0, "given", "one for all, given") \
  X(kGivenPerBatch, DUALGEMM_SCALING_GIVEN_PER_BATCH, 1, "given_per_batch", "one for each batch or expert, given") \
  X(kTensor, DUALGEMM_SCALING_TENSOR, 2, "tensor", "one for all, found: amax of all rows / 2688") \
  X(kRow, DUALGEMM_SCALING_ROW, 3, "row", "one for each row, found: amax of the row / 2688")

/* clang-format on */

/* One row as an enumerator: enum class E : int32_t { DUALGEMM_..._TABLE(DUALGEMM_CPP_ENUMERATOR) };
 * and for C enum { DUALGEMM_..._TABLE(DUALGEMM_C_CONSTANT) }; */
#define DUALGEMM_CPP_ENUMERATOR(cpp_name, c_name, number, name, meaning) cpp_name = number,
#define DUALGEMM_C_CONSTANT(cpp_name, c_name, number, name, meaning) c_name = number,

#endif /* DUALGEMM_ENUMS_H */
