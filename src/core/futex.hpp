// Sleeping on a word of memory. std::atomic::wait does the same and spins as it likes.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace dualgemm::core {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// Sleeps while the word is `value`; may return early.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t value) noexcept {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
#else
  word.wait(value);
#endif
}

// Wakes one who sleeps on the word; the caller has changed it.
inline void futex_wake_one(std::atomic<uint32_t>& word) noexcept {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
#else
  word.notify_one();
#endif
}

}  // namespace dualgemm::core
