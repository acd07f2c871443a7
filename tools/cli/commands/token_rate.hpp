// Tokens a second that a model's weights allow, from what was measured on the GPU.
#pragma once

#include <cstdint>
#include <string>

namespace dualgemm::cli {

// Bytes of linear layers, and how many of the experts a token goes through.
struct WeightsOfAToken {
  int64_t dense_bytes = 0, expert_bytes = 0;
  int64_t experts = 0, experts_of_a_token = 0;  // 0: config.json does not say
};

// "about 95 for one sequence, ...": one token after the other, if every linear layer is read at the
// rate that docs/performance has for an MLP at one row, and nothing else takes time. "not measured"
// for GPUs and CPUs that have no such table, and where the experts are not known.
std::string tokens_a_second(const std::string& product, const WeightsOfAToken& weights);

}  // namespace dualgemm::cli
