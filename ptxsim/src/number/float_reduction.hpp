// The least or largest of many f32 values as redux.sync and tcgen05.ld.red take it (PTX ISA 9.0,
// "redux.sync"): +0 is above -0; without .NaN only numbers count; a NaN is 0x7fffffff.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ptxsim {

class FloatReduction {
 public:
  struct Form {
    bool is_min = false, absolute = false, propagates_nan = false;
  };
  explicit FloatReduction(Form form) : form_(form) {}

  void add(uint32_t bits) {
    const float v = std::bit_cast<float>(form_.absolute ? bits & 0x7fffffffu : bits);
    if (v != v) {
      any_nan_ = true;
      return;
    }
    const bool less = v < best_ || (v == best_ && std::signbit(v) && !std::signbit(best_));
    const bool more = v > best_ || (v == best_ && !std::signbit(v) && std::signbit(best_));
    if (!any_number_ || (form_.is_min ? less : more)) best_ = v;
    any_number_ = true;
  }
  uint32_t result() const {
    const bool is_nan = !any_number_ || (any_nan_ && form_.propagates_nan);
    return is_nan ? 0x7fffffffu : std::bit_cast<uint32_t>(best_);
  }

 private:
  Form form_;
  bool any_number_ = false, any_nan_ = false;
  float best_ = 0;
};

}  // namespace ptxsim
