#include <fmt/format.h>

#include <array>

#include "checkpoint/checkpoint.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr std::array<const char*, 2> kNibbleOrders = {"low_even", "high_even"};
constexpr std::array<const char*, 2> kStackedOrders = {"gate_first", "up_first"};

template <class Enum, size_t kCount>
Expected<Enum> parse(const std::array<const char*, kCount>& names, const char* what,
                     const std::string& text) {
  for (size_t i = 0; i < kCount; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
  }
  return Status::invalid(what, fmt::format("'{}'", text),
                         fmt::format("must be one of {}", fmt::join(names, ", ")));
}

}  // namespace

const char* name_of(NibbleOrder order) noexcept {
  return kNibbleOrders[static_cast<size_t>(order)];
}
const char* name_of(StackedOrder order) noexcept {
  return kStackedOrders[static_cast<size_t>(order)];
}

Expected<NibbleOrder> parse_nibble_order(const std::string& name) {
  return parse<NibbleOrder>(kNibbleOrders, "nibble order", name);
}
Expected<StackedOrder> parse_stacked_order(const std::string& name) {
  return parse<StackedOrder>(kStackedOrders, "stacked order", name);
}

}  // namespace dualgemm::checkpoint
