// CUTLASS's SM90 GEMMs of F16 with FP32 sums, one kernel for each word that the program takes:
// ping-pong, cooperative, stream-K.
#include <cstring>

#include "gemm.hpp"

namespace {

using program::Problem;
using Half = cutlass::half_t;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;

template <class Tile, class Cluster, class MainloopSchedule, class EpilogueSchedule,
          class Scheduler>
struct Gemm {
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, float, RowMajor, 4, float,
      RowMajor, 4, EpilogueSchedule>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, RowMajor, 8, Half, ColumnMajor, 8,
      float, Tile, Cluster, cutlass::gemm::collective::StageCount<3>,
      MainloopSchedule>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop,
                                                      Epilogue, Scheduler>;
};

using PingPong =
    Gemm<cute::Shape<cute::_64, cute::_64, cute::_64>, cute::Shape<cute::_2, cute::_1, cute::_1>,
         cutlass::gemm::KernelTmaWarpSpecializedPingpong, cutlass::epilogue::TmaWarpSpecialized,
         void>::Kernel;
using Cooperative =
    Gemm<cute::Shape<cute::_128, cute::_64, cute::_64>, cute::Shape<cute::_1, cute::_2, cute::_1>,
         cutlass::gemm::KernelTmaWarpSpecializedCooperative,
         cutlass::epilogue::TmaWarpSpecializedCooperative, void>::Kernel;
using StreamK =
    Gemm<cute::Shape<cute::_128, cute::_64, cute::_64>, cute::Shape<cute::_1, cute::_1, cute::_1>,
         cutlass::gemm::KernelTmaWarpSpecializedCooperative,
         cutlass::epilogue::TmaWarpSpecializedCooperative, cutlass::gemm::StreamKScheduler>::Kernel;

float value(uint32_t operand, int row, int k) {
  const uint32_t place =
      operand << 28 ^ static_cast<uint32_t>(row) << 14 ^ static_cast<uint32_t>(k);
  return static_cast<float>(program::scattered(place) % 9) / 2 - 2;
}

std::vector<Half> operand(uint32_t which, int rows, int k) {
  std::vector<Half> values;
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < k; ++i) values.push_back(Half(value(which, row, i)));
  return values;
}

template <class Kernel>
size_t check(const Problem& p, const typename Kernel::TileSchedulerArguments& scheduler = {}) {
  const program::OnDevice<Half> a(operand(1, p.m, p.k)), b(operand(2, p.n, p.k));
  const std::vector<float> source = program::sources(p);
  const program::OnDevice<float> c(source), d(source.size());
  typename Kernel::MainloopArguments mainloop{};
  mainloop.ptr_A = a.data();
  mainloop.dA = program::packed<typename Kernel::StrideA>(p.k);
  mainloop.ptr_B = b.data();
  mainloop.dB = program::packed<typename Kernel::StrideB>(p.k);
  const size_t workspace = program::run<Kernel>(p, mainloop, c.data(), d.data(), scheduler);
  program::compare(
      p, [](int row, int k) { return value(1, row, k); },
      [](int row, int k) { return value(2, row, k); }, source, d.values());
  return workspace;
}

}  // namespace

// No size is a multiple of a tile, and there are more tiles than CTAs.
int main(int argc, char** argv) {
  const char* kernel = argc == 2 ? argv[1] : "";
  if (std::strcmp(kernel, "ping_pong") == 0) {
    check<PingPong>({200, 136, 328, 4});
  } else if (std::strcmp(kernel, "cooperative") == 0) {
    check<Cooperative>({200, 200, 328, 2});
  } else if (std::strcmp(kernel, "stream_k") ==
             0) {  // 2 tiles of 17 k-tiles for 3 CTAs: tiles that two CTAs share
    StreamK::TileSchedulerArguments scheduler{};
    scheduler.decomposition_mode = decltype(scheduler.decomposition_mode)::StreamK;
    const size_t workspace = check<StreamK>({104, 120, 1064, 3}, scheduler);
    program::require(workspace > 0, "partial sums have a workspace");
  } else {
    std::printf("usage: %s ping_pong | cooperative | stream_k\n", argv[0]);
    return 2;
  }
}
