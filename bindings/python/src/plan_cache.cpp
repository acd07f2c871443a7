#include "plan_cache.hpp"

#include <cstring>
#include <string_view>

#include "recent_cache.hpp"
#include "status.hpp"

namespace dualgemm::python {
namespace {

// Never destroyed: threads may still run while the process ends.
auto& cache() {
  static auto* const only = new RecentCache<PlanKey, Plan, kMostPlans>;
  return *only;
}

}  // namespace

size_t hash_of(const PlanKey& key) noexcept {
  const char* bytes = reinterpret_cast<const char*>(&key.problem);
  size_t hash = std::hash<std::string_view>()({bytes, sizeof key.problem});
  for (const int32_t part :
       {key.device, key.device_index, key.strategy, key.prepared, key.unaligned}) {
    hash = hash * 1000003 + static_cast<size_t>(part);
  }
  return hash * 1000003 + std::hash<std::string>()(key.config);
}

bool PlanKey::operator==(const PlanKey& other) const noexcept {
  return std::memcmp(&problem, &other.problem, sizeof problem) == 0 && device == other.device &&
         device_index == other.device_index && strategy == other.strategy &&
         prepared == other.prepared && unaligned == other.unaligned && config == other.config;
}

Plan::Plan(const PlanKey& key) {
  dualgemm_plan_options options;
  check(dualgemm_plan_options_init(&options, sizeof options));
  options.device = key.device;
  options.strategy = key.strategy;
  options.prepared = key.prepared;
  options.config = key.config.c_str();
  options.unaligned = key.unaligned;
  options.trusted_pointers = key.device == DUALGEMM_DEVICE_CUDA;
  check(dualgemm_plan_create(&key.problem, &options, &plan));
  check(dualgemm_plan_workspace_size(plan, &workspace_bytes));
  if (key.prepared != 0) check(dualgemm_plan_prepared_descriptor(plan, &prepared));
}

Plan::~Plan() { dualgemm_plan_destroy(plan); }

// Threads keep no plan of their own: a thread_local object with a destructor ends the process where
// there is no memory to register it.
std::shared_ptr<const Plan> plan_for(const PlanKey& key) { return cache().get(key); }

int64_t plans_kept() { return cache().size(); }

}  // namespace dualgemm::python
