// What was made for a key, kept: the most recent first, a bounded number of them. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace dualgemm::python {

// Key: has ==, and hash_of(key). Value: made of a key.
template <class Key, class Value, int64_t kMost>
class RecentCache {
 public:
  std::shared_ptr<const Value> get(const Key& key) {
    const std::shared_ptr<const Value> found = find(key);
    return found != nullptr ? found : keep(key, std::make_shared<const Value>(key));
  }

  int64_t size() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(kept_.size());
  }

 private:
  struct Hash {
    size_t operator()(const Key& key) const noexcept { return hash_of(key); }
  };
  using Kept = std::list<std::pair<Key, std::shared_ptr<const Value>>>;

  std::shared_ptr<const Value> find(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!kept_.empty() && kept_.front().first == key) return kept_.front().second;
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found->second);
    return kept_.front().second;
  }

  // Another thread may have been faster; then its value counts.
  std::shared_ptr<const Value> keep(const Key& key, std::shared_ptr<const Value> value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(key);
    if (found != places_.end()) return found->second->second;
    kept_.emplace_front(key, std::move(value));
    places_.emplace(key, kept_.begin());
    if (static_cast<int64_t>(kept_.size()) > kMost) {
      places_.erase(kept_.back().first);
      kept_.pop_back();
    }
    return kept_.front().second;
  }

  std::mutex mutex_;
  Kept kept_;
  std::unordered_map<Key, typename Kept::iterator, Hash> places_;
};

}  // namespace dualgemm::python
