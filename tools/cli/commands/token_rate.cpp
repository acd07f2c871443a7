#include "tools/cli/commands/token_rate.hpp"

#include <fmt/format.h>

namespace dualgemm::cli {
namespace {

// One row in 16 bits through prepared weights that lie in no cache: docs/performance.md and the
// tables that it names.
struct MeasuredRate {
  const char* product;
  const char* what;
  double values;  // of weights, 9/16 of a byte each
  double us;
};
constexpr MeasuredRate kRates[] = {
    {"NVIDIA H200", "a whole MLP of (14336, 4096)", 3.0 * 14336 * 4096, 32.1},
    {"NVIDIA H100 80GB HBM3", "gate and up of (4096, 7168)", 2.0 * 4096 * 7168, 12.56}};

}  // namespace

std::string tokens_a_second(const std::string& product, const WeightsOfAToken& weights) {
  const bool has_experts = weights.expert_bytes > 0;
  const bool is_known = weights.experts > 0 && weights.experts_of_a_token > 0 &&
                        weights.experts_of_a_token <= weights.experts;
  auto bytes = static_cast<double>(weights.dense_bytes);
  if (has_experts && is_known) {
    bytes += static_cast<double>(weights.expert_bytes) *
             static_cast<double>(weights.experts_of_a_token) / static_cast<double>(weights.experts);
  }
  if (bytes <= 0.0 || (has_experts && !is_known)) return "not measured";
  for (const MeasuredRate& rate : kRates) {
    if (product != rate.product) continue;
    const double bytes_a_second = rate.values * 9 / 16 / (rate.us * 1e-6);
    return fmt::format(
        "about {:.3g} for one sequence, if all linear layers are read as fast as {}, {:.2f} TB/s, "
        "and nothing else takes time",
        bytes_a_second / bytes, rate.what, bytes_a_second * 1e-12);
  }
  return "not measured";
}

}  // namespace dualgemm::cli
