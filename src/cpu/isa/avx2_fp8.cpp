#include "cpu/isa/fp8.hpp"

namespace dualgemm::cpu::avx2 {
namespace {

#include "cpu/generic/fp8-inl.hpp"

}  // namespace

constexpr Fp8Multiply kFp8Multiply = multiply;

}  // namespace dualgemm::cpu::avx2
