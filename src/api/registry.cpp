#include "api/registry.hpp"

#include <vector>

#include "api/cuda_backend.hpp"
#include "api/reference_strategy.hpp"
#include "cpu/strategies.hpp"

namespace dualgemm::api {

std::span<const Strategy* const> registry() {
  static const std::vector<const Strategy*> all = [] {
    std::vector<const Strategy*> list{&reference_strategy()};
    for (const Strategy* strategy : cpu::strategies()) list.push_back(strategy);
    for (const Strategy* strategy : cuda_strategies()) list.push_back(strategy);
    return list;
  }();
  return all;
}

}  // namespace dualgemm::api
