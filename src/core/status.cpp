#include "dualgemm/status.hpp"

#include <memory>
#include <utility>

#include "core/printable.hpp"

namespace dualgemm {
namespace {

// Bytes of the parts of a message, at most: together kLongestMessage. A rule may list names.
constexpr size_t kLongestPart = core::kLongestMessage / 4, kLongestRule = core::kLongestMessage / 2;

}  // namespace

Status Status::error(StatusCode code, std::string argument, std::string observed,
                     std::string rule) {
  argument = core::printable(argument, kLongestPart);
  observed = core::printable(observed, kLongestPart);
  rule = core::printable(rule, kLongestRule);
  Status status;
  status.detail_ = std::make_shared<const Detail>(
      Detail{code, std::move(argument), std::move(observed), std::move(rule)});
  return status;
}

}  // namespace dualgemm
