// The first layer of a checkpoint times a row of ones, through the installed package. Prints d[0].
#include <cstdio>
#include <vector>

#include "dualgemm/checkpoint.hpp"
#include "dualgemm/dualgemm.hpp"

int main(int argc, char** argv) {
  const auto fail = [](const dualgemm::Status& status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  };
  const auto checkpoint = dualgemm::Checkpoint::open(argc > 1 ? argv[1] : "");
  if (!checkpoint) return fail(checkpoint.status());
  if (checkpoint->layers().empty()) return 1;
  const auto layer = checkpoint->load(checkpoint->layers().front().prefix);
  if (!layer) return fail(layer.status());

  dualgemm::Problem problem{.m = 1};
  problem.d.type = dualgemm::DataType::kF32;
  layer->describe(problem);
  const std::vector<uint8_t> ones(static_cast<size_t>(problem.k / 2), 0x22);
  const std::vector<uint8_t> scales(static_cast<size_t>(problem.k / 16), 0x38);
  std::vector<float> d(static_cast<size_t>(problem.n));
  dualgemm::Buffers buffers;
  buffers.a = ones.data();
  buffers.a_scales = scales.data();
  buffers.d = d.data();
  layer->attach_to(buffers, 1.0f);
  const dualgemm::Status status = dualgemm::run(problem, buffers);
  if (!status.ok()) return fail(status);
  std::printf("%.6g\n", static_cast<double>(d[0]));
}
