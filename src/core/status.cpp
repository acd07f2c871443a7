#include "dualgemm/status.hpp"

#include "core/printable.hpp"

namespace dualgemm {
namespace {

// Bytes of the parts of a message, at most: together kLongestMessage. A rule may list names.
constexpr size_t kLongestPart = core::kLongestMessage / 4, kLongestRule = core::kLongestMessage / 2;

}  // namespace

Status Status::error(StatusCode code, std::string argument, std::string observed,
                     std::string rule) {
  Status status;
  status.detail_ = std::make_shared<const Detail>(
      Detail{code, core::printable(argument, kLongestPart), core::printable(observed, kLongestPart),
             core::printable(rule, kLongestRule)});
  return status;
}

}  // namespace dualgemm
