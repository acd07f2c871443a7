// Errors of the interpreter. Inside the library an error is a thrown Fault; the functions of
// ptxsim.hpp catch it and return it as a value, so nothing is thrown across the library's boundary.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <variant>

namespace ptxsim {

// What kind of mistake was found, which is also what a caller's exit code depends on.
enum class ErrorKind : uint8_t {
  kInput,     // PTX text, case description or launch that is not valid: exit code 2
  kFault,     // the kernel did something wrong while it ran (bad address, broken rule): exit code 1
  kDeadlock,  // no warp can make progress
  kBudget,    // the instruction budget was used up
  kStopped,   // the caller set Options::stop
};

const char* name_of(ErrorKind kind);  // "input"

// Where: a line of the PTX text, and the source line that its `.loc` names when there is one.
struct Place {
  std::string ptx_name;     // as given to parse()
  int ptx_line = 0;         // 1-based; 0: unknown
  int ptx_column = 0;       // 1-based; 0: the whole line
  std::string source_file;  // empty without .loc
  int source_line = 0;
  std::string function = {};  // that holds the line; empty: none, it is in an entry
};
// "kernel.ptx:12:3 (dual_gemm.cuh:88)", with " in function" when there is one.
std::string to_string(const Place& place);

struct Error {
  ErrorKind kind = ErrorKind::kInput;
  std::string message;  // one line: what was observed and the rule
  Place place;
};
std::string to_string(const Error& error);  // "<place>: error: <message>"

// Thrown inside the library only. The machine adds the place of the instruction and the CTA, warp
// and lane.
class Fault : public std::exception {
 public:
  explicit Fault(std::string message, ErrorKind kind = ErrorKind::kFault, int lane = -1)
      : error_{kind, std::move(message), {}}, lane_(lane) {}
  explicit Fault(Error error) : error_(std::move(error)) {}
  const char* what() const noexcept override { return error_.message.c_str(); }
  const Error& error() const { return error_; }
  Error& error() { return error_; }
  int lane() const { return lane_; }  // of the warp; -1: the whole warp
  // The fault happened while an asynchronous operation completed: the statement that issued it,
  // else -1.
  void issued_by(uint32_t statement) { issuer_ = static_cast<int64_t>(statement); }
  int64_t issuer() const { return issuer_; }

 private:
  Error error_;
  int lane_ = -1;
  int64_t issuer_ = -1;
};

template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit: a function returns the value or the error as it is.
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  T& value() { return std::get<T>(state_); }
  const T& value() const { return std::get<T>(state_); }
  const Error& error() const { return std::get<Error>(state_); }
  T* operator->() { return &value(); }
  T& operator*() { return value(); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace ptxsim
