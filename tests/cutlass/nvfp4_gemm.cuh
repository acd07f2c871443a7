// CUTLASS's SM100 NVFP4 GEMM for one tile, cluster and schedule: D = alpha·A·Bᵀ + beta·C.
#pragma once

#include <type_traits>

#include "cutlass/detail/sm100_blockscaled_layout.hpp"
#include "gemm_case.cuh"
#include "nvfp4_data.hpp"

namespace cutlass_case {

// Source: void when there is no C.
template <class Tile, class Cluster, class Stages, class MainloopSchedule, class EpilogueSchedule,
          class Source, class Output>
struct Nvfp4Gemm {
  using Pair = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
  using RowMajor = cutlass::layout::RowMajor;
  using ColumnMajor = cutlass::layout::ColumnMajor;
  static constexpr int kAlignOperand = 32;
  static constexpr int kAlignOutput = 128 / cutlass::sizeof_bits<Output>::value;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, Source, RowMajor, kAlignOutput,
      Output, RowMajor, kAlignOutput, EpilogueSchedule>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm100, cutlass::arch::OpClassBlockScaledTensorOp, Pair, RowMajor,
      kAlignOperand, Pair, ColumnMajor, kAlignOperand, float, Tile, Cluster, Stages,
      MainloopSchedule>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop,
                                                      Epilogue, void>;
  using ScaleConfig = typename Mainloop::Sm1xxBlkScaledConfig;
};

// Truncation to FP32 after each K = 64 instruction, and of its five terms at 35 fractional bits
// (ISA reference 11.1).
inline double nvfp4_error(int k) { return (k + 63) / 64 * (0x1p-23 + 10 * 0x1p-35); }

inline float source_value(int64_t l, int64_t i, int64_t j) {
  return static_cast<float>((l * 31 + i * 7 + j * 5) % 97 - 48) / 16;
}

template <class Gemm, class Source, class Output>
void write_nvfp4_case(const std::filesystem::path& folder, const std::string& entry,
                      const Problem& p, Scales scales) {
  std::mt19937_64 random(p.seed);
  const int64_t lda = p.k + p.a_pad, ldb = p.k + p.b_pad, ldd = p.n + p.d_pad;
  const Nvfp4Operand a(p.m, p.k, p.l, lda / 2, scales, random);
  const Nvfp4Operand b(p.n, p.k, p.l, ldb / 2, scales, random);

  LaunchRecord record;
  record.entry = entry;
  using Kernel = typename Gemm::Kernel;
  using Code = typename Gemm::Mainloop::ArrayElementA;
  using Scale = cutlass::float_ue4m3_t;
  const auto shape = cute::make_shape(p.m, p.n, p.k, p.l);
  typename Kernel::Arguments arguments{};
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  arguments.problem_shape = shape;
  arguments.mainloop.ptr_A = reinterpret_cast<const Code*>(record.add_input("a", a.codes()));
  arguments.mainloop.ptr_B = reinterpret_cast<const Code*>(record.add_input("b", b.codes()));
  arguments.mainloop.ptr_SFA = reinterpret_cast<const Scale*>(record.add_input("sfa", a.scales()));
  arguments.mainloop.ptr_SFB = reinterpret_cast<const Scale*>(record.add_input("sfb", b.scales()));
  arguments.mainloop.dA = strides<typename Kernel::StrideA>(lda, p.m);
  arguments.mainloop.dB = strides<typename Kernel::StrideB>(ldb, p.n);
  arguments.mainloop.layout_SFA = Gemm::ScaleConfig::tile_atom_to_shape_SFA(shape);
  arguments.mainloop.layout_SFB = Gemm::ScaleConfig::tile_atom_to_shape_SFB(shape);
  arguments.epilogue.thread.alpha = p.alpha;
  arguments.epilogue.thread.beta = p.beta;
  if constexpr (!std::is_void_v<Source>) {
    std::vector<Source> c(static_cast<size_t>(ldd * p.m * p.l), Source(0.0f));
    for (int64_t l = 0; l < p.l; ++l) {
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j)
          c[(l * p.m + i) * ldd + j] = Source(source_value(l, i, j));
      }
    }
    Bytes bytes(c.size() * sizeof(Source));
    std::memcpy(bytes.data(), static_cast<const void*>(c.data()), bytes.size());
    arguments.epilogue.ptr_C = reinterpret_cast<const Source*>(record.add_input("c", bytes));
    arguments.epilogue.dC = strides<typename Kernel::StrideC>(ldd, p.m);
  }
  arguments.epilogue.ptr_D =
      reinterpret_cast<Output*>(record.add_output("d", ldd * p.m * p.l * sizeof(Output)));
  arguments.epilogue.dD = strides<typename Kernel::StrideD>(ldd, p.m);
  arguments.hw_info.sm_count = 148;
  set_launch<Kernel>(arguments, record);

  record.expected.buffer = "d";
  record.expected.type = std::is_same_v<Output, float> ? "f32" : "bf16";
  set_expected<Output>(p, a, b, source_value, scales == Scales::kExact ? 0 : nvfp4_error(p.k),
                       record);
  record.write(folder);
}

}  // namespace cutlass_case
