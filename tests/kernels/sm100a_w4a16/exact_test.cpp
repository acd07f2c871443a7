// Every decoded weight, bit for bit.
#include "core/e2m1.hpp"
#include "kernels/simulation/results.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

std::vector<float> simulated(RandomCase& data, W4a16Run run) {
  data.poison_d();
  EXPECT_TRUE(simulate(data, run)) << describe(data.problem, run);
  return result_of(data);
}

// Rows of A that pick a single k each give the weights themselves: every code with every finite
// scale, whose sign does not count.
TEST(Sm100aW4a16Exact, EveryWeightIsDecodedExactly) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    Problem p = with_rows({.m = 16, .n = 254, .k = 16, .d = {.type = DataType::kF32}}, type);
    p.act.kind = ActivationKind::kIdentity;
    Rng rng;
    RandomCase data(p, rng, Values::kExact);
    data.alpha_gate = data.alpha_up = 1.0f;
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t k = 0; k < p.k; ++k)
        store_element(data.a.data.data(), type, row * p.k + k, row == k ? 1.0f : 0.0f);
    }
    const auto scale_of = [](int64_t col) {
      return static_cast<uint8_t>(col % 127 + (col < 127 ? 0 : 128));
    };
    for (int64_t col = 0; col < p.n; ++col) {
      for (int64_t i = 0; i < 8; ++i) {
        data.gate.data[col * 8 + i] = static_cast<uint8_t>(2 * i + (2 * i + 1) * 16);
        data.up.data[col * 8 + i] = 0x22;  // one, twice
      }
      data.gate.scales[data.resolved.gate.scale_map()(col, 0)] = scale_of(col);
      data.up.scales[data.resolved.up.scale_map()(col, 0)] = 0x38;  // one
    }
    const std::vector<float> got = simulated(data, {});
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t col = 0; col < p.n; ++col) {
        const float scale = core::decode_e4m3(scale_of(col) & 0x7F);
        ASSERT_EQ(got[static_cast<size_t>(row * p.n + col)],
                  core::decode_e2m1(static_cast<uint8_t>(row)) * scale)
            << "code " << row << " scale " << col << " " << name_of(type);
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
