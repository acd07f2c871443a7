#include "machine/tensor_core/mma/partners.hpp"

#include <array>
#include <cstddef>

namespace ptxsim {
namespace {

constexpr std::array<uint8_t, 256> kOwnIndex = [] {
  std::array<uint8_t, 256> index{};
  for (unsigned k = 0; k < index.size(); ++k) index[k] = static_cast<uint8_t>(k);
  return index;
}();

}  // namespace

void Partners::set(unsigned row, unsigned k, unsigned partner) {
  if (partners_.empty()) {
    partners_.resize(size_t{rows_} * k_);
    for (size_t i = 0; i < partners_.size(); ++i) partners_[i] = kOwnIndex[i % k_];
  }
  partners_[size_t{row} * k_ + k] = static_cast<uint8_t>(partner);
}

const uint8_t* Partners::of(unsigned row) const {
  return partners_.empty() ? kOwnIndex.data() : &partners_[size_t{row} * k_];
}

}  // namespace ptxsim
