#include "cpu/isa/fp8.hpp"

namespace dualgemm::cpu::scalar {
namespace {

#include "cpu/generic/fp8-inl.hpp"

}  // namespace

constexpr Fp8Multiply kFp8Multiply = multiply;

}  // namespace dualgemm::cpu::scalar
