#include "cuda/runtime/cublaslt.hpp"

#include <fmt/format.h>

#include <array>
#include <mutex>
#include <vector>

#include "cuda/runtime/check.hpp"
#include "cuda/runtime/cublaslt_library.hpp"

namespace dualgemm::cuda {
namespace {

constexpr int kCandidates = 16;  // algorithms that the heuristics are asked for
constexpr uint32_t kAlignment = 16;

cudaDataType_t type_of(GemmNumber number) {
  switch (number) {
    case GemmNumber::kF16:
      return CUDA_R_16F;
    case GemmNumber::kBF16:
      return CUDA_R_16BF;
    case GemmNumber::kE4M3:
      return CUDA_R_8F_E4M3;
    case GemmNumber::kNvfp4:
      break;
  }
  return CUDA_R_4F_E2M1;
}

// cuBLASLt counts columns first. Read so, the row-major matrices are w (k x n), a (k x m) and
// d (n x m) = w^T * a: its A is w, its B is a.
struct Descriptors {
  cublasLtMatmulDescOpaque_t matmul;
  cublasLtMatrixLayoutOpaque_t w, a, d;
};

template <class Value>
Status set_layout(const CublasLtLibrary& library, cublasLtMatrixLayoutOpaque_t* layout,
                  cublasLtMatrixLayoutAttribute_t attribute, Value value) {
  return check(library, library.layout_set(layout, attribute, &value, sizeof value),
               "cublasLtMatrixLayoutSetAttribute");
}

Status make_layout(const CublasLtLibrary& library, cublasLtMatrixLayoutOpaque_t* layout,
                   cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld, int64_t batches,
                   int64_t batch_stride) {
  DUALGEMM_TRY(check(library,
                     library.layout_init(layout, sizeof *layout, type, static_cast<uint64_t>(rows),
                                         static_cast<uint64_t>(cols), ld),
                     "cublasLtMatrixLayoutInit"));
  DUALGEMM_TRY(set_layout(library, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                          static_cast<int32_t>(batches)));
  return set_layout(library, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride);
}

template <class Value>
Status set_matmul(const CublasLtLibrary& library, cublasLtMatmulDescOpaque_t* matmul,
                  cublasLtMatmulDescAttributes_t attribute, Value value) {
  return check(library, library.desc_set(matmul, attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
}

// Where the block scales lie. Before there are any: an address that is aligned as they are.
struct BlockScales {
  const void* w = reinterpret_cast<const void*>(uintptr_t{256});
  const void* a = reinterpret_cast<const void*>(uintptr_t{256});
};

Status set_block_scales(const CublasLtLibrary& library, cublasLtMatmulDescOpaque_t* matmul,
                        const BlockScales& scales) {
  constexpr auto kMode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
  DUALGEMM_TRY(set_matmul(library, matmul, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, kMode));
  DUALGEMM_TRY(set_matmul(library, matmul, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, kMode));
  DUALGEMM_TRY(set_matmul(library, matmul, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales.w));
  return set_matmul(library, matmul, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales.a);
}

Status make_descriptors(const CublasLtLibrary& library, const GemmShape& s,
                        const BlockScales& scales, Descriptors* out) {
  DUALGEMM_TRY(check(
      library, library.desc_init(&out->matmul, sizeof out->matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F),
      "cublasLtMatmulDescInit"));
  DUALGEMM_TRY(set_matmul(library, &out->matmul, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T));
  if (s.number == GemmNumber::kE4M3) {  // as its users have it: sums of 128 products in 14 bits
    DUALGEMM_TRY(set_matmul(library, &out->matmul, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1}));
  }
  if (s.number == GemmNumber::kNvfp4) {
    DUALGEMM_TRY(set_block_scales(library, &out->matmul, scales));
  }
  const cudaDataType_t type = type_of(s.number);
  DUALGEMM_TRY(make_layout(library, &out->w, type, s.k, s.n, s.w_ld, s.batches, s.w_batch_stride));
  DUALGEMM_TRY(make_layout(library, &out->a, type, s.k, s.m, s.a_ld, s.batches, s.a_batch_stride));
  return make_layout(library, &out->d, CUDA_R_32F, s.n, s.m, s.d_ld, s.batches, s.d_batch_stride);
}

template <class Value>
Status prefer(const CublasLtLibrary& library, cublasLtMatmulPreferenceOpaque_t* preference,
              cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
  return check(library, library.preference_set(preference, attribute, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
}

// Partial sums of a split k only through the workspace, where they are added in a fixed order.
Status make_preference(const CublasLtLibrary& library, cublasLtMatmulPreferenceOpaque_t* out) {
  DUALGEMM_TRY(
      check(library, library.preference_init(out, sizeof *out), "cublasLtMatmulPreferenceInit"));
  DUALGEMM_TRY(prefer(library, out, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                      static_cast<uint64_t>(kGemmWorkspaceBytes)));
  DUALGEMM_TRY(prefer(library, out, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    DUALGEMM_TRY(prefer(library, out, attribute, kAlignment));
  }
  return {};
}

std::string describe(const GemmShape& s) {
  constexpr const char* kNumbers[] = {"fp16", "bf16", "e4m3", "nvfp4"};
  return fmt::format("{} x {} x {}, {} batches, {}", s.m, s.n, s.k, s.batches,
                     kNumbers[static_cast<size_t>(s.number)]);
}

Expected<cublasLtMatmulAlgo_t> choose_algorithm(const CublasLtLibrary& library,
                                                cublasLtHandle_t handle, const GemmShape& shape) {
  Descriptors descriptors;
  DUALGEMM_TRY(make_descriptors(library, shape, {}, &descriptors));
  cublasLtMatmulPreferenceOpaque_t preference;
  DUALGEMM_TRY(make_preference(library, &preference));
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> found{};
  int count = 0;
  const cublasStatus_t status =
      library.heuristic(handle, &descriptors.matmul, &descriptors.w, &descriptors.a, &descriptors.d,
                        &descriptors.d, &preference, kCandidates, found.data(), &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) {
    DUALGEMM_TRY(check(library, status, "cublasLtMatmulAlgoGetHeuristic"));
  }
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& candidate = found[static_cast<size_t>(i)];
    if (candidate.state == CUBLAS_STATUS_SUCCESS &&
        candidate.workspaceSize <= static_cast<size_t>(kGemmWorkspaceBytes)) {
      return candidate.algo;
    }
  }
  return Status::unsupported("cuBLASLt", describe(shape),
                             "it has no algorithm for this on this GPU");
}

// The handle and the decisions of one GPU.
struct Device {
  struct Choice {
    GemmShape shape;
    cublasLtMatmulAlgo_t algorithm;
  };
  cublasLtHandle_t handle = nullptr;  // lives as long as the process
  std::vector<Choice> choices;
};

struct Chosen {
  cublasLtHandle_t handle;
  cublasLtMatmulAlgo_t algorithm;
};

Expected<Chosen> chosen_for(const CublasLtLibrary& library, const GemmShape& shape) {
  static std::mutex mutex;
  static std::vector<Device> devices;
  int current = 0;
  DUALGEMM_CUDA_TRY(cudaGetDevice(&current));
  const auto index = static_cast<size_t>(current);
  const std::lock_guard lock(mutex);
  if (devices.size() <= index) devices.resize(index + 1);
  Device& device = devices[index];
  if (device.handle == nullptr) {
    DUALGEMM_TRY(check(library, library.create(&device.handle), "cublasLtCreate"));
  }
  for (const Device::Choice& choice : device.choices) {
    if (choice.shape == shape) return Chosen{device.handle, choice.algorithm};
  }
  const Expected<cublasLtMatmulAlgo_t> algorithm = choose_algorithm(library, device.handle, shape);
  if (!algorithm) return algorithm.status();
  device.choices.push_back({shape, *algorithm});
  return Chosen{device.handle, *algorithm};
}

}  // namespace

Status plan_gemm(const GemmShape& shape) {
  const Expected<CublasLtLibrary>& library = cublaslt();
  if (!library) return library.status();
  return chosen_for(*library, shape).status();
}

Status enqueue_gemm(const GemmShape& shape, const GemmOperands& operands, cudaStream_t stream) {
  const Expected<CublasLtLibrary>& library = cublaslt();
  if (!library) return library.status();
  const Expected<Chosen> chosen = chosen_for(*library, shape);
  if (!chosen) return chosen.status();
  Descriptors descriptors;
  DUALGEMM_TRY(
      make_descriptors(*library, shape, {operands.w_scales, operands.a_scales}, &descriptors));
  const float one = 1.0f, zero = 0.0f;
  return check(
      *library,
      library->matmul(chosen->handle, &descriptors.matmul, &one, operands.w, &descriptors.w,
                      operands.a, &descriptors.a, &zero, operands.d, &descriptors.d, operands.d,
                      &descriptors.d, &chosen->algorithm, operands.workspace,
                      static_cast<size_t>(kGemmWorkspaceBytes), stream),
      "cublasLtMatmul");
}

}  // namespace dualgemm::cuda
