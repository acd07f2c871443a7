// Plans, kept: making one takes longer than a small product. Thread-safe, bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dualgemm/dualgemm.h"

namespace dualgemm::python {

// What a plan depends on. `problem` comes from dualgemm_problem_init(), so its padding is known.
struct PlanKey {
  dualgemm_problem problem;
  int32_t device = DUALGEMM_DEVICE_CPU;
  int32_t device_index = 0;  // CUDA: the current GPU has this number
  int32_t strategy = DUALGEMM_STRATEGY_AUTO;
  int32_t prepared = 0;
  int32_t unaligned = 0;
  std::string config;

  bool operator==(const PlanKey& other) const noexcept;
};
size_t hash_of(const PlanKey& key) noexcept;

struct Plan {
  explicit Plan(const PlanKey& key);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  dualgemm_plan* plan = nullptr;
  int64_t workspace_bytes = 0;
  dualgemm_prepared_descriptor prepared{};  // zeros: nothing to prepare
};

// A kept plan or a new one, on the current GPU. The calling thread's last one is found without a
// lock. At most kMostPlans are kept; the one not asked for longest goes first.
inline constexpr int64_t kMostPlans = 512;
std::shared_ptr<const Plan> plan_for(const PlanKey& key);

// How many are kept now.
int64_t plans_kept();

}  // namespace dualgemm::python
