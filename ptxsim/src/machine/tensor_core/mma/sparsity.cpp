#include "machine/tensor_core/mma/sparsity.hpp"

#include <fmt/format.h>

namespace ptxsim {

bool is_defined(Sparsity sparsity, uint32_t bits, MetadataOrder order) {
  if (sparsity == Sparsity::kOneOfTwo) return bits == 0b0100 || bits == 0b1110;
  const uint32_t first = bits & 3, second = bits >> 2;
  if (order == MetadataOrder::kTcgen05 && bits == 0b0110) return true;
  return order == MetadataOrder::kAny ? first != second : first < second;
}

std::string undefined_metadata(Sparsity sparsity, uint32_t bits, uint32_t row, uint32_t chunk) {
  const uint32_t elements = chunk_elements(sparsity);
  return fmt::format(
      "sparsity metadata of row {} of A, columns {} .. {}: 0b{:04b}; PTX does not define it, and "
      "what "
      "is stored there is not 0",
      row, chunk * elements, (chunk + 1) * elements - 1, bits);
}

}  // namespace ptxsim
