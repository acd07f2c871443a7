// CUTLASS's GEMM for Hopper, warp-specialised and persistent: half precision, sums in FP32, A's and
// B's rows along K; clusters of two.
//   cooperative|pingpong M N K [--launch | --time | --graph]
// Tiles of 128 x 256 by two warpgroups together, or of 64 x 256 by each in turn.
#include "program.cuh"

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

namespace {

using Half = cutlass::half_t;
using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;

template <class Tile, class MainloopSchedule, class EpilogueSchedule>
struct Gemm {
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void,
      cutlass::layout::RowMajor, 8, Half, cutlass::layout::RowMajor, 8,
      EpilogueSchedule>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, cutlass::layout::RowMajor, 8, Half,
      cutlass::layout::ColumnMajor, 8, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      MainloopSchedule>::CollectiveOp;
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
  using Device = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
};
using Cooperative = Gemm<cute::Shape<cute::_128, cute::_256, cute::_64>,
                         cutlass::gemm::KernelTmaWarpSpecializedCooperative,
                         cutlass::epilogue::TmaWarpSpecializedCooperative>;
using PingPong =
    Gemm<cute::Shape<cute::_64, cute::_256, cute::_64>,
         cutlass::gemm::KernelTmaWarpSpecializedPingpong, cutlass::epilogue::TmaWarpSpecialized>;

void check(cutlass::Status status, const char* what) {
  if (status == cutlass::Status::kSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cutlass::cutlassGetStatusString(status));
  std::exit(1);
}

struct Buffers {
  __half *a, *b, *d;
};

template <class G>
typename G::Device prepared(const Buffers& buffers, int m, int n, int k, int sms) {
  using Kernel = typename G::Kernel;
  typename G::Device::Arguments arguments{};
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  arguments.problem_shape = cute::make_shape(m, n, k, 1);
  arguments.mainloop.ptr_A = reinterpret_cast<const Half*>(buffers.a);
  arguments.mainloop.ptr_B = reinterpret_cast<const Half*>(buffers.b);
  arguments.mainloop.dA = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, k, 1});
  arguments.mainloop.dB = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, k, 1});
  arguments.epilogue.thread.alpha = 1;
  arguments.epilogue.ptr_D = reinterpret_cast<Half*>(buffers.d);
  arguments.epilogue.dD = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {m, n, 1});
  arguments.hw_info.sm_count = sms;
  typename G::Device gemm;
  check(gemm.can_implement(arguments), "can_implement");
  if (G::Device::get_workspace_size(arguments) != 0) {
    std::fprintf(stderr, "a workspace is needed\n");
    std::exit(1);
  }
  check(gemm.initialize(arguments), "initialize");
  return gemm;
}

template <class G>
int run(const program::Options& options) {
  const int m = options.sizes[0], n = options.sizes[1], k = options.sizes[2];
  int sms = 0;
  program::check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0),
                 "cudaDeviceGetAttribute");
  const size_t of_a = size_t{1} * m * k, of_b = size_t{1} * n * k, of_d = size_t{1} * m * n;
  const auto a = program::random_halves(of_a, 1), b = program::random_halves(of_b, 2);
  std::vector<Buffers> copies;
  std::vector<typename G::Device> gemms;
  for (size_t i = 0; i < (options.time ? program::copies_of(2 * (of_a + of_b + of_d)) : 1); ++i) {
    copies.push_back(
        {program::on_device(a), program::on_device(b), program::room_for<__half>(of_d)});
    gemms.push_back(prepared<G>(copies.back(), m, n, k, sms));
  }
  if (options.time) {
    std::printf("%.4g\n", program::time_of(options, gemms.size(), [&](size_t i, cudaStream_t s) {
                  check(gemms[i].run(s), "run");
                }));
    return 0;
  }
  check(gemms[0].run(), "run");
  program::check(cudaDeviceSynchronize(), "the kernel");
  if (!options.check) return 0;
  const std::vector<__half> d = program::from_device(copies[0].d, of_d);
  double worst = 0;
  for (const int row : {0, m / 2, m - 1}) {
    for (int column = 0; column < n; column += 61) {
      double sum = 0, size = 0;
      for (int i = 0; i < k; ++i) {
        const double product = static_cast<double>(__half2float(a[size_t{1} * row * k + i])) *
                               static_cast<double>(__half2float(b[size_t{1} * column * k + i]));
        sum += product, size += std::abs(product);
      }
      const double found = static_cast<double>(__half2float(d[size_t{1} * row * n + column]));
      worst = std::max(worst, std::abs(found - sum) / (size * 1e-5 + std::abs(sum) * 0x1p-10));
    }
  }
  std::printf("largest error of three rows: %.2g of what rounding explains\n", worst);
  return worst < 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* usage = "cooperative|pingpong M N K";
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s %s [--launch | --time | --graph]\n", argv[0], usage);
    return 2;
  }
  const std::string kernel = argv[1];
  const program::Options options = program::parse(argc - 1, argv + 1, 3, usage);
  if (kernel == "cooperative") return run<Cooperative>(options);
  if (kernel == "pingpong") return run<PingPong>(options);
  std::fprintf(stderr, "%s: %s\n", argv[0], usage);
  return 2;
}
