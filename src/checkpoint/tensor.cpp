#include "checkpoint/tensor.hpp"

#include <fmt/format.h>

#include <iterator>
#include <new>

#include "dualgemm/formats.hpp"

namespace dualgemm::checkpoint {
namespace {

struct TypeInfo {
  ElementType type;
  const char* name;
  int bits;
};
// In the order of the enum.
constexpr TypeInfo kTypes[] = {
    {ElementType::kBool, "BOOL", 8},
    {ElementType::kF4, "F4", 4},
    {ElementType::kF6E2M3, "F6_E2M3", 6},
    {ElementType::kF6E3M2, "F6_E3M2", 6},
    {ElementType::kU8, "U8", 8},
    {ElementType::kI8, "I8", 8},
    {ElementType::kF8E4M3, "F8_E4M3", 8},
    {ElementType::kF8E5M2, "F8_E5M2", 8},
    {ElementType::kF8E8M0, "F8_E8M0", 8},
    {ElementType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    {ElementType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    {ElementType::kU16, "U16", 16},
    {ElementType::kI16, "I16", 16},
    {ElementType::kF16, "F16", 16},
    {ElementType::kBF16, "BF16", 16},
    {ElementType::kU32, "U32", 32},
    {ElementType::kI32, "I32", 32},
    {ElementType::kF32, "F32", 32},
    {ElementType::kU64, "U64", 64},
    {ElementType::kI64, "I64", 64},
    {ElementType::kF64, "F64", 64},
    {ElementType::kC64, "C64", 64},
};
static_assert([] {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].type != static_cast<ElementType>(i)) return false;
  }
  return true;
}());

const TypeInfo& info_of(ElementType type) noexcept { return kTypes[static_cast<size_t>(type)]; }

template <class T, class Decode>
void decode_all(std::span<const std::byte> data, std::vector<float>& out, Decode decode) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = decode(load_element<T>(data, static_cast<int64_t>(i)));
  }
}

}  // namespace

const char* name_of(ElementType type) noexcept { return info_of(type).name; }

int bits_of(ElementType type) noexcept { return info_of(type).bits; }

Expected<ElementType> parse_element_type(std::string_view name) {
  std::string legal;
  for (const TypeInfo& info : kTypes) {
    if (name == info.name) return info.type;
    legal += legal.empty() ? "must be one of " : ", ";
    legal += info.name;
  }
  return Status::invalid("dtype", fmt::format("'{}'", name), legal);
}

std::string format_shape(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

Expected<int64_t> checked_elements(std::span<const int64_t> shape, const std::string& tensor) {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      return Status::invalid(tensor, "shape " + format_shape(shape), "extents must be >= 0");
    }
    empty = empty || extent == 0;
    overflow = __builtin_mul_overflow(count, extent, &count) || overflow;
  }
  if (empty) return int64_t{0};  // [2^62, 2^62, 0] has no elements, whatever the others multiply to
  if (overflow) {
    return Status::error(StatusCode::kOverflow, tensor, "shape " + format_shape(shape),
                         "the number of elements must fit in 63 bits");
  }
  return count;
}

Expected<int64_t> checked_bytes(ElementType type, std::span<const int64_t> shape,
                                const std::string& tensor) {
  const Expected<int64_t> elements = checked_elements(shape, tensor);
  if (!elements) return elements.status();
  int64_t bits = 0;
  if (__builtin_mul_overflow(*elements, int64_t{bits_of(type)}, &bits)) {
    return Status::error(StatusCode::kOverflow, tensor,
                         fmt::format("shape {} of {}", format_shape(shape), name_of(type)),
                         "the size in bits must fit in 63 bits");
  }
  if (bits % 8 != 0) {
    return Status::invalid(tensor,
                           fmt::format("shape {} of {}", format_shape(shape), name_of(type)),
                           "the elements must fill whole bytes");
  }
  return bits / 8;
}

Expected<std::vector<float>> decode_to_f32(const TensorView& tensor) {
  try {
    std::vector<float> out(static_cast<size_t>(tensor.elements()));
    switch (tensor.dtype) {
      case ElementType::kF16:
        decode_all<uint16_t>(tensor.data, out, decode_f16);
        return out;
      case ElementType::kBF16:
        decode_all<uint16_t>(tensor.data, out, decode_bf16);
        return out;
      case ElementType::kF32:
        decode_all<float>(tensor.data, out, [](float value) { return value; });
        return out;
      case ElementType::kF64:
        decode_all<double>(tensor.data, out,
                           [](double value) { return static_cast<float>(value); });
        return out;
      default:
        return Status::unsupported(tensor.name, std::string("dtype ") + name_of(tensor.dtype),
                                   "must be F16, BF16, F32 or F64");
    }
  } catch (const std::bad_alloc&) {
    return Status::error(StatusCode::kOutOfMemory, tensor.name,
                         "shape " + format_shape(tensor.shape), "an FP32 copy must fit in memory");
  }
}

}  // namespace dualgemm::checkpoint
