// 16 ones times 16 ones, twice, identity activation: exactly 16 * 16.
#include <cstdio>
#include <vector>

#include "dualgemm/dualgemm.hpp"

int main() {
  dualgemm::Problem problem{.m = 1, .n = 1, .k = 16};
  problem.d.type = dualgemm::DataType::kF32;
  problem.act.kind = dualgemm::ActivationKind::kIdentity;
  const std::vector<uint8_t> ones(8, 0x22), scales(1, 0x38);
  float d = 0;
  dualgemm::Buffers buffers;
  buffers.a = buffers.gate = buffers.up = ones.data();
  buffers.a_scales = buffers.gate_scales = buffers.up_scales = scales.data();
  buffers.d = &d;
  const dualgemm::Status status = dualgemm::run(problem, buffers);
  if (!status.ok() || d != 256.0f) {
    std::fprintf(stderr, "d = %g, status: %s\n", d, status.message().c_str());
    return 1;
  }
  problem.k = 17;
  if (dualgemm::run(problem, buffers).argument() != "k") return 1;
  std::printf("dualgemm %s from C++: %g\n", dualgemm::version(), d);
}
