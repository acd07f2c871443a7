// FlashAttention 3's forward pass for Hopper: head dimension 128, half precision, no mask, clusters
// of two CTAs, as its library chooses for rows that fill them.
//   BATCH ROWS HEADS [--launch | --time | --graph]
#include "flash_fwd_launch_template.h"
#include "program.cuh"

namespace {

constexpr int kHeadDim = 128, kRowsOfTile = 128;

struct Attention {
  __half *q, *k, *v, *o;
  float* lse;
};

Flash_fwd_params params_of(const Attention& a, int batch, int rows, int heads, int sms) {
  Flash_fwd_params p{};
  p.q_ptr = a.q, p.k_ptr = a.k, p.v_ptr = a.v, p.o_ptr = a.o, p.softmax_lse_ptr = a.lse;
  const int64_t row = int64_t{heads} * kHeadDim;
  p.q_row_stride = p.k_row_stride = p.v_row_stride = p.o_row_stride = row;
  p.q_batch_stride = p.k_batch_stride = p.v_batch_stride = p.o_batch_stride = row * rows;
  p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = kHeadDim;
  p.v_dim_stride = 1;
  p.h = p.h_k = heads;
  p.b = p.b_k = batch;
  p.seqlen_q = p.seqlen_k = rows;
  p.d = p.dv = p.d_rounded = p.dv_rounded = kHeadDim;
  p.scale_softmax = 1 / std::sqrt(static_cast<float>(kHeadDim));
  p.window_size_left = p.window_size_right = -1;
  p.num_splits = 1;
  p.arch = 90;
  p.num_sm = sms;
  return p;
}

void launch(Flash_fwd_params& p, cudaStream_t stream) {
  run_flash_fwd<90, kHeadDim, kHeadDim, 2, cutlass::half_t, cutlass::half_t, false, false, false,
                false, false, false, false, false, false, false>(p, stream);
}

}  // namespace

int main(int argc, char** argv) {
  const program::Options options = program::parse(argc, argv, 3, "BATCH ROWS HEADS");
  const int batch = options.sizes[0], rows = options.sizes[1], heads = options.sizes[2];
  if (rows % (2 * kRowsOfTile) != 0) {
    std::fprintf(stderr, "ROWS: a multiple of %d\n", 2 * kRowsOfTile);
    return 2;
  }
  int sms = 0;
  program::check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0),
                 "cudaDeviceGetAttribute");
  const size_t count = size_t{1} * batch * rows * heads * kHeadDim;
  const auto q = program::random_halves(count, 1), k = program::random_halves(count, 2),
             v = program::random_halves(count, 3);
  std::vector<Flash_fwd_params> params;
  std::vector<Attention> copies;
  for (size_t i = 0; i < (options.time ? program::copies_of(4 * 2 * count) : 1); ++i) {
    copies.push_back({program::on_device(q), program::on_device(k), program::on_device(v),
                      program::room_for<__half>(count),
                      program::room_for<float>(count / kHeadDim)});
    params.push_back(params_of(copies.back(), batch, rows, heads, sms));
  }
  if (options.time) {
    std::printf("%.4g\n", program::time_of(options, params.size(), [&](size_t i, cudaStream_t s) {
                  launch(params[i], s);
                }));
    return 0;
  }
  launch(params[0], nullptr);
  program::check(cudaDeviceSynchronize(), "the kernel");
  if (!options.check) return 0;
  const std::vector<__half> o = program::from_device(copies[0].o, count);
  double worst = 0;
  for (const int row : {0, rows / 2, rows - 1}) {
    const size_t first =
        (size_t{1} * (batch - 1) * rows) * heads * kHeadDim + size_t{1} * (heads - 1) * kHeadDim;
    const auto at = [&](const std::vector<__half>& x, int r, int d) {
      return static_cast<double>(__half2float(x[first + size_t{1} * r * heads * kHeadDim + d]));
    };
    std::vector<double> scores(rows);
    double sum = 0;
    for (int j = 0; j < rows; ++j) {
      double s = 0;
      for (int d = 0; d < kHeadDim; ++d) s += at(q, row, d) * at(k, j, d);
      sum += scores[j] = std::exp(s / std::sqrt(static_cast<double>(kHeadDim)));
    }
    for (int d = 0; d < kHeadDim; ++d) {
      double value = 0;
      for (int j = 0; j < rows; ++j) value += scores[j] / sum * at(v, j, d);
      worst = std::max(worst, std::abs(value - at(o, row, d)));
    }
  }
  std::printf("largest error of three rows: %.2g\n", worst);
  return worst < 2e-3 ? 0 : 1;
}
