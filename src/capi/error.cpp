// What the last call of a thread returned. Kept in two keys of pthreads and not in thread_local
// variables: one with a destructor makes the first call of a thread abort when there is no memory
// to register it, keeps the library loaded until the thread ends, and the memory of any other one
// is allocated by the dynamic linker, which ends the process when it cannot be. Storing under a key
// fails at worst, and then a status or its text is missing.
#include "capi/error.hpp"

#include <cxxabi.h>
#include <pthread.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace dualgemm::capi {
namespace {

// message, argument, observed and rule, each with its final zero, in one piece of malloc().
enum Part { kMessage, kArgument, kObserved, kRule };

struct Keys {
  pthread_key_t code = 0;  // the status and kCanThrow as a number: nothing to free
  pthread_key_t text =
      0;  // freed by free() itself, so that no code of ours runs when a thread ends
  bool has_code = false, has_text = false;
};
constinit Keys keys;

// Before the static objects of a program that calls from their constructors.
[[gnu::constructor(101)]] void make_keys() {
  keys.has_code = pthread_key_create(&keys.code, nullptr) == 0;
  keys.has_text = keys.has_code && pthread_key_create(&keys.text, std::free) == 0;
}

// When the library is unloaded and when the process ends. Other threads' texts of that moment are
// left: one for each thread that has had an error and still runs.
[[gnu::destructor(101)]] void drop_keys() {
  if (keys.has_text) {
    std::free(pthread_getspecific(keys.text));
    pthread_key_delete(keys.text);
  }
  if (keys.has_code) pthread_key_delete(keys.code);
  keys = {};
}

char* stored_text() noexcept {
  return keys.has_text ? static_cast<char*>(pthread_getspecific(keys.text)) : nullptr;
}

void drop_text() noexcept {
  char* const text = stored_text();
  if (text == nullptr) return;
  pthread_setspecific(keys.text, nullptr);  // cannot fail: the key has a place in this thread
  std::free(text);
}

void keep_text(const std::string (&parts)[4]) noexcept {
  if (!keys.has_text) return;
  size_t bytes = 0;
  for (const std::string& part : parts) bytes += std::strlen(part.c_str()) + 1;
  auto* const text = static_cast<char*>(std::malloc(bytes));
  if (text == nullptr) return;
  char* at = text;
  for (const std::string& part : parts) {
    const size_t size = std::strlen(part.c_str()) + 1;
    std::memcpy(at, part.c_str(), size);
    at += size;
  }
  if (pthread_setspecific(keys.text, text) != 0) std::free(text);
}

// Twice the status, and kCanThrow. A thread begins with 0.
intptr_t stored_code() noexcept {
  return keys.has_code ? reinterpret_cast<intptr_t>(pthread_getspecific(keys.code)) : 0;
}
constexpr intptr_t kCanThrow = 1;

bool store_code(intptr_t bits) noexcept {
  return keys.has_code && pthread_setspecific(keys.code, reinterpret_cast<void*>(bits)) == 0;
}

dualgemm_status record_code(dualgemm_status code) noexcept {
  store_code(static_cast<intptr_t>(code) * 2 | (stored_code() & kCanThrow));
  return code;
}

dualgemm_status last_code() noexcept { return static_cast<dualgemm_status>(stored_code() / 2); }

// "": there is no text of the last call.
const char* last_text(Part part) noexcept {
  const char* text = last_code() == DUALGEMM_OK ? nullptr : stored_text();
  if (text == nullptr) return "";
  for (int i = 0; i < part; ++i) text += std::strlen(text) + 1;
  return text;
}

}  // namespace

bool thread_can_throw() noexcept {
  if ((stored_code() & kCanThrow) != 0) return true;
  constexpr size_t kMoreThanThatTakes = 4096;
  void* volatile probe = std::malloc(kMoreThanThatTakes);  // volatile: else no compiler asks
  if (probe == nullptr) return false;
  std::free(probe);
  if (abi::__cxa_get_globals() == nullptr) return false;
  store_code(stored_code() | kCanThrow);
  return true;
}

dualgemm_status record(const Status& status) noexcept {
  const auto code = static_cast<dualgemm_status>(status.code());
  if (status.ok()) return record_code(code);
  drop_text();
  try {
    keep_text({status.message(), status.argument(), status.observed(), status.rule()});
  } catch (...) {  // no memory for the text; the code is what counts
  }
  return record_code(code);
}

dualgemm_status record_out_of_memory() noexcept {
  drop_text();
  return record_code(DUALGEMM_OUT_OF_MEMORY);
}

}  // namespace dualgemm::capi

using namespace dualgemm::capi;

const char* dualgemm_status_name(dualgemm_status status) noexcept {
  return dualgemm::status_code_name(static_cast<dualgemm::StatusCode>(status));
}

dualgemm_status dualgemm_last_status(void) noexcept { return last_code(); }

const char* dualgemm_last_error_message(void) noexcept {
  const char* const message = last_text(kMessage);
  return *message == '\0' ? dualgemm_status_name(last_code()) : message;
}
const char* dualgemm_last_error_argument(void) noexcept { return last_text(kArgument); }
const char* dualgemm_last_error_observed(void) noexcept { return last_text(kObserved); }
const char* dualgemm_last_error_rule(void) noexcept { return last_text(kRule); }
