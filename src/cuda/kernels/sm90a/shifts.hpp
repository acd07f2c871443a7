// Left shifts of the decoding as products.
#pragma once

#include <cstdint>

namespace dualgemm::cuda::sm90a {

// 16 and 2, by which decoding multiplies words instead of shifting them by 4 and 1. As members of a
// kernel's parameters they are numbers that the compiler does not know: it cannot turn the products
// into shifts again, which go through the pipe that limits decoding.
struct Shifts {
  uint32_t sixteen = 16, two = 2;
};

}  // namespace dualgemm::cuda::sm90a
