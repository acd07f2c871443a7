// A list that a signal handler may read while others change it.
#pragma once

#include <atomic>
#include <utility>

namespace dualgemm::checkpoint {

// Entries are never freed, as a handler may stand in any of them: one that is out of use is taken
// again. So the memory is that of the most entries that were in use at one time. Objects of static
// storage: without a destructor that runs before the last signal.
template <class T>
class SignalSafeList {
 public:
  class Entry {
    friend class SignalSafeList;
    enum State { kFree, kChanging, kInUse };
    std::atomic<State> state{kChanging};
    Entry* next = nullptr;
    T value;
  };

  // May throw std::bad_alloc, and then has changed nothing.
  Entry* add(T value) {
    for (Entry* entry = first_.load(); entry != nullptr; entry = entry->next) {
      typename Entry::State expected = Entry::kFree;
      if (!entry->state.compare_exchange_strong(expected, Entry::kChanging)) continue;
      entry->value = std::move(value);
      entry->state.store(Entry::kInUse);
      return entry;
    }
    Entry* entry = new Entry;
    entry->value = std::move(value);
    entry->next = first_.load();
    while (!first_.compare_exchange_weak(entry->next, entry)) {
    }
    entry->state.store(Entry::kInUse);
    return entry;
  }
  static void remove(Entry* entry) noexcept { entry->state.store(Entry::kFree); }

  // What a handler calls: takes no lock, allocates nothing. Stops at the first for which `is_it`.
  template <class Predicate>
  const T* find(Predicate&& is_it) const noexcept {
    for (const Entry* entry = first_.load(); entry != nullptr; entry = entry->next) {
      if (entry->state.load() == Entry::kInUse && is_it(entry->value)) return &entry->value;
    }
    return nullptr;
  }

 private:
  std::atomic<Entry*> first_{nullptr};
};

}  // namespace dualgemm::checkpoint
