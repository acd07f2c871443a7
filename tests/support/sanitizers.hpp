// Which sanitizer this program is built with: some tests cannot run under one, and sweeps over
// numbers need not be as fine there, where only addresses and threads are watched.
#pragma once

namespace dualgemm::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DUALGEMM_TEST_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define DUALGEMM_TEST_TSAN 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(DUALGEMM_TEST_ASAN)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__) || defined(DUALGEMM_TEST_TSAN)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

}  // namespace dualgemm::test
