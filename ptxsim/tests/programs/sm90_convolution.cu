// CUTLASS's SM90 convolutions of F16 as implicit GEMMs: activations come by im2col copies. Each
// word is a problem: padded, with strides and dilations, and of single pixels.
#include "device.hpp"
// CUTLASS's convolutions use what these have without naming them.
#include "cute/tensor.hpp"
#include "cutlass/kernel_hardware_info.hpp"

#include <cstring>

#include "cutlass/conv/collective/collective_builder.hpp"
#include "cutlass/conv/convnd_problem_shape.hpp"
#include "cutlass/conv/device/conv_universal_adapter.hpp"
#include "cutlass/conv/dispatch_policy.hpp"
#include "cutlass/conv/kernel/conv_universal.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"

namespace {

using Half = cutlass::half_t;
using Layout = cutlass::layout::TensorNHWC;
using Tile = cute::Shape<cute::_64, cute::_64, cute::Shape<cute::_64>>;
using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, float, Layout, 4, float, Layout,
    4, cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
using Mainloop = typename cutlass::conv::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, cutlass::conv::Operator::kFprop, Half,
    Layout, 8, Half, Layout, 8, float, Tile, Cluster,
    cutlass::conv::collective::StageCountAutoCarveout<sizeof(typename Epilogue::SharedStorage)>,
    cutlass::conv::collective::KernelScheduleAuto>::CollectiveOp;
using Shape = cutlass::conv::ConvProblemShape<cutlass::conv::Operator::kFprop, 2>;
using Kernel = cutlass::conv::kernel::ConvUniversal<Shape, Mainloop, Epilogue>;
using Convolution = cutlass::conv::device::ConvUniversalAdapter<Kernel>;

struct Problem {
  int images, height, width, channels, filters, filter_height, filter_width, padding, stride,
      dilation;
  int rows() const { return outputs(height, filter_height); }
  int columns() const { return outputs(width, filter_width); }
  int outputs(int extent, int filter) const {
    return (extent + 2 * padding - (filter - 1) * dilation - 1) / stride + 1;
  }
};

std::vector<Half> numbers(uint32_t which, size_t count) {
  std::vector<Half> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(Half(
        static_cast<float>(program::scattered(which << 28 ^ static_cast<uint32_t>(i)) % 9) / 2 -
        2));
  return values;
}

// The loops that define it.
float expected(const Problem& p, const std::vector<Half>& images, const std::vector<Half>& filters,
               size_t output) {
  const int k = static_cast<int>(output % p.filters),
            x = static_cast<int>(output / p.filters % p.columns());
  const int y = static_cast<int>(output / p.filters / p.columns() % p.rows());
  const size_t image = output / p.filters / p.columns() / p.rows();
  float sum = 0;
  for (int r = 0; r < p.filter_height; ++r)
    for (int s = 0; s < p.filter_width; ++s) {
      const int h = y * p.stride - p.padding + r * p.dilation,
                w = x * p.stride - p.padding + s * p.dilation;
      if (h < 0 || h >= p.height || w < 0 || w >= p.width) continue;
      const size_t pixel = ((image * p.height + h) * p.width + w) * p.channels;
      const size_t tap =
          ((static_cast<size_t>(k) * p.filter_height + r) * p.filter_width + s) * p.channels;
      for (int c = 0; c < p.channels; ++c)
        sum += static_cast<float>(images[pixel + c]) * static_cast<float>(filters[tap + c]);
    }
  return sum;
}

void check(const Problem& p) {
  const std::vector<Half> images =
      numbers(1, size_t{1} * p.images * p.height * p.width * p.channels);
  const std::vector<Half> filters =
      numbers(2, size_t{1} * p.filters * p.filter_height * p.filter_width * p.channels);
  const size_t outputs = size_t{1} * p.images * p.rows() * p.columns() * p.filters;
  const program::OnDevice<Half> a(images), b(filters);
  const program::OnDevice<float> d(outputs);
  const Shape shape(
      cutlass::conv::Mode::kCrossCorrelation, {p.images, p.height, p.width, p.channels},
      {p.filters, p.filter_height, p.filter_width, p.channels}, {p.padding, p.padding},
      {p.padding, p.padding}, {p.stride, p.stride}, {p.dilation, p.dilation}, 1);
  typename Kernel::StrideD strides{};
  cute::for_each(cute::make_seq<cute::rank<0>(typename Kernel::StrideD{})>{},
                 [&](auto i) { cute::get<0, i>(strides) = shape.stride_C[Shape::RankT - 2 - i]; });
  const typename Convolution::Arguments arguments{
      shape, {a.data(), b.data()}, {{1.0f, 0.0f}, nullptr, strides, d.data(), strides}, {0, 2}};
  Convolution convolution;
  program::require(convolution.can_implement(arguments) == cutlass::Status::kSuccess,
                   "the problem is supported");
  program::require(convolution.initialize(arguments, nullptr) == cutlass::Status::kSuccess,
                   "initialize");
  program::require(convolution.run() == cutlass::Status::kSuccess, "run");
  const std::vector<float> result = d.values();
  for (size_t i = 0; i < outputs; ++i) {
    const float right = expected(p, images, filters, i);
    if (result[i] == right) continue;
    std::printf("wrong: output %zu is %g; must be %g\n", i, static_cast<double>(result[i]),
                static_cast<double>(right));
    std::exit(1);
  }
  std::printf("right\n");
}

}  // namespace

int main(int argc, char** argv) {
  const char* problem = argc == 2 ? argv[1] : "";
  if (std::strcmp(problem, "padded") == 0) {
    check({2, 9, 11, 64, 64, 3, 3, 1, 1, 1});
  } else if (std::strcmp(problem, "strided") == 0) {
    check({2, 13, 10, 72, 40, 3, 2, 2, 2, 3});
  } else if (std::strcmp(problem, "pixels") == 0) {
    check({1, 8, 8, 64, 64, 1, 1, 0, 2, 1});
  } else {
    std::printf("usage: %s padded | strided | pixels\n", argv[0]);
    return 2;
  }
}
