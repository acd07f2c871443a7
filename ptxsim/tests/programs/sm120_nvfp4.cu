// CUTLASS's SM120 GEMMs of NVFP4 with FP32 sums, one kernel for each word that the program takes.
#include <cstring>

#include "cutlass/detail/sm100_blockscaled_layout.hpp"
#include "gemm.hpp"

namespace {

using program::Problem;
using Pair = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;
using Tile = cute::Shape<cute::_128, cute::_128, cute::_128>;
using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;

template <class MainloopSchedule>
struct Gemm {
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm120, cutlass::arch::OpClassBlockScaledTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, float, RowMajor, 4, float,
      RowMajor, 4, cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm120, cutlass::arch::OpClassBlockScaledTensorOp, Pair, RowMajor, 32, Pair,
      ColumnMajor, 32, float, Tile, Cluster, cutlass::gemm::collective::StageCount<2>,
      MainloopSchedule>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop,
                                                      Epilogue, void>;
};

using Cooperative = Gemm<cutlass::gemm::KernelTmaWarpSpecializedCooperative>::Kernel;
using PingPong = Gemm<cutlass::gemm::KernelTmaWarpSpecializedPingpong>::Kernel;

// Codes of E2M1, two in a byte with the low half first; UE4M3 scales 1/2, 1 and 2 for 16 elements,
// in tiles of 128 rows x 4.
class Operand {
 public:
  Operand(uint32_t which, int rows, int k) : k_(k), groups_((k + 63) / 64) {
    codes_.resize(static_cast<size_t>(rows) * k / 2);
    for (size_t i = 0; i < codes_.size(); ++i)
      codes_[i] = static_cast<uint8_t>(program::scattered(which << 28 ^ static_cast<uint32_t>(i)));
    scales_.resize(static_cast<size_t>((rows + 127) / 128) * groups_ * 512);
    for (size_t i = 0; i < scales_.size(); ++i)
      scales_[i] = static_cast<uint8_t>(
          0x30 + 8 * (program::scattered(~(which << 28) ^ static_cast<uint32_t>(i)) % 3));
  }
  const std::vector<uint8_t>& codes() const { return codes_; }
  const std::vector<uint8_t>& scales() const { return scales_; }

  double operator()(int row, int k) const {
    static constexpr double kMagnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const uint8_t pair = codes_[(static_cast<size_t>(row) * k_ + k) / 2];
    const unsigned code = k % 2 == 0 ? pair & 15u : pair >> 4u;
    const int group = k / 16;
    const uint8_t scale = scales_[static_cast<size_t>(row / 128 * groups_ + group / 4) * 512 +
                                  row % 32 * 16 + row % 128 / 32 * 4 + group % 4];
    return (code & 8u ? -1 : 1) * kMagnitude[code & 7u] *
           (scale == 0x30   ? 0.5
            : scale == 0x38 ? 1
                            : 2);
  }

 private:
  int k_, groups_;
  std::vector<uint8_t> codes_, scales_;
};

template <class Kernel>
void check(const Problem& p) {
  using Mainloop = typename Kernel::CollectiveMainloop;
  using ScaleConfig = typename Mainloop::Sm1xxBlkScaledConfig;
  const Operand a(1, p.m, p.k), b(2, p.n, p.k);
  const program::OnDevice<uint8_t> a_codes(a.codes()), a_scales(a.scales()), b_codes(b.codes()),
      b_scales(b.scales());
  const std::vector<float> source = program::sources(p);
  const program::OnDevice<float> c(source), d(source.size());
  const auto shape = cute::make_shape(p.m, p.n, p.k, 1);
  typename Kernel::MainloopArguments mainloop{};
  mainloop.ptr_A = reinterpret_cast<decltype(mainloop.ptr_A)>(a_codes.data());
  mainloop.dA = program::packed<typename Kernel::StrideA>(p.k);
  mainloop.ptr_B = reinterpret_cast<decltype(mainloop.ptr_B)>(b_codes.data());
  mainloop.dB = program::packed<typename Kernel::StrideB>(p.k);
  mainloop.ptr_SFA = reinterpret_cast<decltype(mainloop.ptr_SFA)>(a_scales.data());
  mainloop.layout_SFA = ScaleConfig::tile_atom_to_shape_SFA(shape);
  mainloop.ptr_SFB = reinterpret_cast<decltype(mainloop.ptr_SFB)>(b_scales.data());
  mainloop.layout_SFB = ScaleConfig::tile_atom_to_shape_SFB(shape);
  program::run<Kernel>(p, mainloop, c.data(), d.data());
  program::compare(p, a, b, source, d.values());
}

}  // namespace

// No size is a multiple of a tile, and there are more tiles than CTAs.
int main(int argc, char** argv) {
  const Problem problem{200, 136, 352, 2};
  const char* kernel = argc == 2 ? argv[1] : "";
  if (std::strcmp(kernel, "cooperative") == 0) {
    check<Cooperative>(problem);
  } else if (std::strcmp(kernel, "ping_pong") == 0) {
    check<PingPong>(problem);
  } else {
    std::printf("usage: %s cooperative | ping_pong\n", argv[0]);
    return 2;
  }
}
