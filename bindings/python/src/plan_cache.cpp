#include "plan_cache.hpp"

#include <cstring>
#include <list>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "status.hpp"

namespace dualgemm::python {
namespace {

struct Hash {
  size_t operator()(const PlanKey& key) const noexcept {
    const char* bytes = reinterpret_cast<const char*>(&key.problem);
    size_t hash = std::hash<std::string_view>()({bytes, sizeof key.problem});
    for (const int32_t part :
         {key.device, key.device_index, key.strategy, key.prepared, key.unaligned}) {
      hash = hash * 1000003 + static_cast<size_t>(part);
    }
    return hash * 1000003 + std::hash<std::string>()(key.config);
  }
};

// The most recent plan first.
class Cache {
 public:
  std::shared_ptr<const Plan> find(const PlanKey& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!plans_.empty() && plans_.front().first == key) return plans_.front().second;
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    plans_.splice(plans_.begin(), plans_, found->second);
    return plans_.front().second;
  }

  // Another thread may have been faster; then its plan counts.
  std::shared_ptr<const Plan> keep(const PlanKey& key, std::shared_ptr<const Plan> plan) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(key);
    if (found != places_.end()) return found->second->second;
    plans_.emplace_front(key, std::move(plan));
    places_.emplace(key, plans_.begin());
    if (static_cast<int64_t>(plans_.size()) > kMostPlans) {
      places_.erase(plans_.back().first);
      plans_.pop_back();
    }
    return plans_.front().second;
  }

  int64_t size() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(plans_.size());
  }

 private:
  using Plans = std::list<std::pair<PlanKey, std::shared_ptr<const Plan>>>;
  std::mutex mutex_;
  Plans plans_;
  std::unordered_map<PlanKey, Plans::iterator, Hash> places_;
};

// Never destroyed: threads may still run while the process ends.
Cache& cache() {
  static Cache* const only = new Cache;
  return *only;
}

}  // namespace

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
std::shared_ptr<const Plan> plan_for(const PlanKey& key) {
  const std::shared_ptr<const Plan> plan = cache().find(key);
  return plan != nullptr ? plan : cache().keep(key, std::make_shared<const Plan>(key));
}

int64_t plans_kept() { return cache().size(); }

}  // namespace dualgemm::python
