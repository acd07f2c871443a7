// SM90, warp-specialised and persistent: F16 in, FP32 sums (wgmma), F16 out; tile 128 x 128 x 64,
// cluster 2 x 2 with TMA multicast of A and B, one cluster that works through all tiles.
#include "f16_data.hpp"
#include "gemm_case.cuh"

namespace cutlass_case {

using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;
using Half = cutlass::half_t;
using Tile = cute::Shape<cute::_128, cute::_128, cute::_64>;
using Cluster = cute::Shape<cute::_2, cute::_2, cute::_1>;
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, Half, RowMajor, 8, Half,
    RowMajor, 8, cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, RowMajor, 8, Half, ColumnMajor, 8,
    float, Tile, Cluster, cutlass::gemm::collective::StageCount<3>,
    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
using Kernel =
    cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;

inline float source_value(int64_t l, int64_t i, int64_t j) {
  return static_cast<float>((l * 31 + i * 7 + j * 5) % 97 - 48) / 16;
}

// Each K = 16 instruction aligns 17 terms to the largest and truncates at 25 fractional bits, then
// to FP32.
inline double wgmma_error(int k) { return (k + 15) / 16 * (0x1p-23 + 17 * 0x1p-24); }

void write_case(const std::filesystem::path& folder, const Problem& p, Values values) {
  std::mt19937_64 random(p.seed);
  const int64_t lda = p.k + p.a_pad, ldb = p.k + p.b_pad, ldd = p.n + p.d_pad;
  const F16Operand a(p.m, p.l, lda, values, random);
  const F16Operand b(p.n, p.l, ldb, values, random);
  std::vector<Half> c(static_cast<size_t>(ldd * p.m * p.l), Half(0.0f));
  for (int64_t l = 0; l < p.l; ++l) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) c[(l * p.m + i) * ldd + j] = Half(source_value(l, i, j));
    }
  }
  Bytes c_bytes(c.size() * sizeof(Half));
  std::memcpy(c_bytes.data(), static_cast<const void*>(c.data()), c_bytes.size());

  LaunchRecord record;
  record.entry = "cutlass_f16_sm90";
  Kernel::Arguments arguments{};
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  arguments.problem_shape = cute::make_shape(p.m, p.n, p.k, p.l);
  arguments.mainloop.ptr_A = reinterpret_cast<const Half*>(record.add_input("a", a.bytes()));
  arguments.mainloop.ptr_B = reinterpret_cast<const Half*>(record.add_input("b", b.bytes()));
  arguments.mainloop.dA = strides<Kernel::StrideA>(lda, p.m);
  arguments.mainloop.dB = strides<Kernel::StrideB>(ldb, p.n);
  arguments.epilogue.thread.alpha = p.alpha;
  arguments.epilogue.thread.beta = p.beta;
  arguments.epilogue.ptr_C = reinterpret_cast<const Half*>(record.add_input("c", c_bytes));
  arguments.epilogue.dC = strides<Kernel::StrideC>(ldd, p.m);
  arguments.epilogue.ptr_D = reinterpret_cast<Half*>(record.add_output("d", c_bytes.size()));
  arguments.epilogue.dD = strides<Kernel::StrideD>(ldd, p.m);
  arguments.hw_info.sm_count = 4;
  arguments.hw_info.max_active_clusters = 1;
  set_launch<Kernel>(arguments, record);

  record.expected.buffer = "d";
  record.expected.type = "f16";
  set_expected<Half>(p, a, b, source_value, values == Values::kExact ? 0 : wgmma_error(p.k),
                     record);
  record.write(folder);
}

}  // namespace cutlass_case

extern "C" __global__ void __launch_bounds__(cutlass_case::Kernel::MaxThreadsPerBlock, 1)
    cutlass_f16_sm90(const __grid_constant__ cutlass_case::Kernel::Params params) {
  extern __shared__ char shared[];
  cutlass_case::Kernel{}(params, shared);
}

int main(int argc, char** argv) {
  return cutlass_case::run_main(argc, argv, [](const std::filesystem::path& folder) {
    using cutlass_case::Values;
    cutlass_case::write_case(folder / "exact", {296, 264, 200, 1, 0, 8, 8, 1.0f, 2.0f, 301},
                             Values::kExact);
    cutlass_case::write_case(folder / "range", {136, 72, 520, 2, 16, 0, 0, 0.37f, -1.25f, 302},
                             Values::kRange);
  });
}
