// Errors are values: Status says which argument broke which rule and what was observed; Expected<T>
// is a T or a Status. The library never prints, aborts, exits or throws across its boundary
// (allocation failure becomes kOutOfMemory).
#pragma once

// All C++ headers of dualgemm include this one before they declare anything.
#if __cplusplus < 201709L  // what GCC 9 and 10 call C++20
#error "dualgemm needs C++20: compile with -std=c++20 or later, or use the C headers (dualgemm.h)"
#endif

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "dualgemm/enums.h"

namespace dualgemm {

// Their numbers and meanings: the table in enums.h.
enum class StatusCode : int32_t { DUALGEMM_STATUS_TABLE(DUALGEMM_CPP_ENUMERATOR) };

// "invalid_argument" and the like; never null.
const char* status_code_name(StatusCode code) noexcept;

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;  // ok

  // Message pattern: "argument: observed; rule", e.g. "k: 4090; must be a multiple of 16". Each
  // part is fit for a terminal: control characters, and what is no UTF-8, stand as "\x1b"; what is
  // longer than its place has "..." in its middle.
  static Status error(StatusCode code, std::string argument, std::string observed,
                      std::string rule);
  static Status invalid(std::string argument, std::string observed, std::string rule) {
    return error(StatusCode::kInvalidArgument, std::move(argument), std::move(observed),
                 std::move(rule));
  }
  static Status unsupported(std::string argument, std::string observed, std::string rule) {
    return error(StatusCode::kUnsupported, std::move(argument), std::move(observed),
                 std::move(rule));
  }

  bool ok() const noexcept { return detail_ == nullptr; }
  StatusCode code() const noexcept { return detail_ ? detail_->code : StatusCode::kOk; }
  std::string argument() const { return detail_ ? detail_->argument : std::string(); }
  std::string observed() const { return detail_ ? detail_->observed : std::string(); }
  std::string rule() const { return detail_ ? detail_->rule : std::string(); }
  std::string message() const {
    return detail_ ? detail_->argument + ": " + detail_->observed + "; " + detail_->rule
                   : std::string("ok");
  }

 private:
  struct Detail {
    StatusCode code;
    std::string argument, observed, rule;
  };
  std::shared_ptr<const Detail> detail_;  // null = ok, so that success costs nothing
};

template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Expected(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok())
      status_ = Status::error(StatusCode::kInternal, "Expected", "ok status", "needs a value");
  }

  bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  const Status& status() const noexcept { return status_; }

  // Precondition of the four accessors: ok().
  T& operator*() & noexcept { return *value_; }
  const T& operator*() const& noexcept { return *value_; }
  T&& operator*() && noexcept { return std::move(*value_); }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace dualgemm

// Returns the Status of `expr` from the enclosing function when it is an error.
#define DUALGEMM_TRY(expr)                                     \
  do {                                                         \
    ::dualgemm::Status dualgemm_try_status = (expr);           \
    if (!dualgemm_try_status.ok()) return dualgemm_try_status; \
  } while (false)
