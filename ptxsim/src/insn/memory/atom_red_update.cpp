// The arithmetic of atomics (PTX ISA 9.0, "Parallel Synchronization and Communication Instructions:
// atom", "red").
#include <bit>
#include <cmath>
#include <cstring>

#include "insn/memory/atom_red.hpp"
#include "number/formats.hpp"

namespace ptxsim {
namespace {

struct Bits128 {
  uint64_t low, high;
  friend bool operator==(const Bits128&, const Bits128&) = default;
};

template <class T, class F>
void update(std::byte* memory, const std::byte* b, const std::byte* c, F&& f) {
  T old, operand, third{};
  std::memcpy(&old, memory, sizeof old);
  std::memcpy(&operand, b, sizeof operand);
  if (c != nullptr) std::memcpy(&third, c, sizeof third);
  const T result = f(old, operand, third);
  std::memcpy(memory, &result, sizeof result);
}

template <class T, AtomicOp kOp>
void integer_update(std::byte* memory, const std::byte* b, const std::byte* c) {
  update<T>(memory, b, c, [](T old, T operand, [[maybe_unused]] T third) -> T {
    if constexpr (kOp == AtomicOp::kAdd) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(old) + static_cast<Unsigned>(operand));
    } else if constexpr (kOp == AtomicOp::kMin) {
      return old < operand ? old : operand;
    } else if constexpr (kOp == AtomicOp::kMax) {
      return old > operand ? old : operand;
    } else if constexpr (kOp == AtomicOp::kInc) {
      return old >= operand ? T{0} : static_cast<T>(old + 1);
    } else if constexpr (kOp == AtomicOp::kDec) {
      return old == 0 || old > operand ? operand : static_cast<T>(old - 1);
    } else if constexpr (kOp == AtomicOp::kAnd) {
      return old & operand;
    } else if constexpr (kOp == AtomicOp::kOr) {
      return old | operand;
    } else {
      return old ^ operand;
    }
  });
}

template <class T>
void exchange(std::byte* memory, const std::byte* b, const std::byte* c) {
  update<T>(memory, b, c, [](T, T operand, T) { return operand; });
}

template <class T>
void compare_and_swap(std::byte* memory, const std::byte* b, const std::byte* c) {
  update<T>(memory, b, c, [](T old, T operand, T third) { return old == operand ? third : old; });
}

template <class T>
UpdateElement bits_update(AtomicOp op) {
  return op == AtomicOp::kExch ? exchange<T> : op == AtomicOp::kCas ? compare_and_swap<T> : nullptr;
}

constexpr uint32_t kNanF32 = 0x7fffffff;  // what arithmetic gives for NaN

float flush(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }

template <bool kFlush>
void add_f32(std::byte* memory, const std::byte* b, const std::byte* c) {
  update<float>(memory, b, c, [](float old, float operand, float) {
    const float sum = kFlush ? flush(flush(old) + flush(operand)) : old + operand;
    return sum != sum ? std::bit_cast<float>(kNanF32) : sum;
  });
}

void add_f64(std::byte* memory, const std::byte* b, const std::byte* c) {
  update<double>(memory, b, c, [](double old, double operand, double) { return old + operand; });
}

struct F16 {
  static float decode(uint16_t code) { return f16_to_float(code); }
  static uint16_t encode(float value) { return float_to_f16(value); }
};
struct Bf16 {
  static float decode(uint16_t code) { return bf16_to_float(code); }
  static uint16_t encode(float value) { return float_to_bf16(value); }
};

// A float sum of two 16-bit floats is rounded twice without harm: 24 bits are at least 2 * 11 + 2.
// min and max: the operand that is no NaN; -0 is below +0.
template <class Format, AtomicOp kOp>
uint16_t half_result(uint16_t old, uint16_t operand) {
  const float a = Format::decode(old), b = Format::decode(operand);
  if constexpr (kOp == AtomicOp::kAdd) {
    return Format::encode(a + b);
  } else {
    if (a != a) return b != b ? Format::encode(a) : operand;
    if (b != b) return old;
    const bool old_is_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
    return old_is_less == (kOp == AtomicOp::kMin) ? old : operand;
  }
}

template <class Format, AtomicOp kOp, int kElements>
void half_update(std::byte* memory, const std::byte* b, const std::byte*) {
  for (int i = 0; i < kElements; ++i)
    update<uint16_t>(memory + 2 * i, b + 2 * i, nullptr,
                     [](uint16_t old, uint16_t operand, uint16_t) {
                       return half_result<Format, kOp>(old, operand);
                     });
}

template <class Format, int kElements>
UpdateElement half_update_of(AtomicOp op, bool vector) {
  switch (op) {
    case AtomicOp::kAdd:
      return half_update<Format, AtomicOp::kAdd, kElements>;
    case AtomicOp::kMin:
      return vector ? half_update<Format, AtomicOp::kMin, kElements> : nullptr;
    case AtomicOp::kMax:
      return vector ? half_update<Format, AtomicOp::kMax, kElements> : nullptr;
    default:
      return nullptr;
  }
}

template <class T>
UpdateElement arithmetic_update(AtomicOp op) {
  switch (op) {
    case AtomicOp::kAdd:
      return integer_update<T, AtomicOp::kAdd>;
    case AtomicOp::kMin:
      return integer_update<T, AtomicOp::kMin>;
    case AtomicOp::kMax:
      return integer_update<T, AtomicOp::kMax>;
    default:
      return bits_update<T>(op);
  }
}

template <class T>
UpdateElement bitwise_update(AtomicOp op) {
  switch (op) {
    case AtomicOp::kAnd:
      return integer_update<T, AtomicOp::kAnd>;
    case AtomicOp::kOr:
      return integer_update<T, AtomicOp::kOr>;
    case AtomicOp::kXor:
      return integer_update<T, AtomicOp::kXor>;
    default:
      return bits_update<T>(op);
  }
}

UpdateElement update_of(AtomicOp op, Type type, bool vector) {
  switch (type) {
    case Type::kU32:
      if (op == AtomicOp::kInc) return integer_update<uint32_t, AtomicOp::kInc>;
      if (op == AtomicOp::kDec) return integer_update<uint32_t, AtomicOp::kDec>;
      return arithmetic_update<uint32_t>(op);
    case Type::kS32:
      return arithmetic_update<int32_t>(op);
    case Type::kU64:
      return arithmetic_update<uint64_t>(op);
    case Type::kS64:
      return arithmetic_update<int64_t>(op);
    case Type::kB16:
      return op == AtomicOp::kCas ? compare_and_swap<uint16_t> : nullptr;
    case Type::kB32:
      return bitwise_update<uint32_t>(op);
    case Type::kB64:
      return bitwise_update<uint64_t>(op);
    case Type::kB128:
      return bits_update<Bits128>(op);
    case Type::kF32:
      return op == AtomicOp::kAdd ? add_f32<false> : bits_update<uint32_t>(op);
    case Type::kF64:
      return op == AtomicOp::kAdd ? add_f64 : bits_update<uint64_t>(op);
    case Type::kF16:
      return half_update_of<F16, 1>(op, vector);
    case Type::kF16x2:
      return half_update_of<F16, 2>(op, vector);
    case Type::kBf16:
      return half_update_of<Bf16, 1>(op, vector);
    case Type::kBf16x2:
      return half_update_of<Bf16, 2>(op, vector);
    default:
      return nullptr;
  }
}

}  // namespace

AtomicUpdate atomic_update(AtomicOp op, Type type, bool vector) {
  const UpdateElement update = update_of(op, type, vector);
  if (op == AtomicOp::kAdd && type == Type::kF32) return {update, add_f32<true>};
  return {update, update};
}

AtomicOp take_atomic_op(Decode& d) {
  const int op = d.modifiers().take_one_of(
      {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
  if (op < 0) d.fail("an operation is missing: .add .min .max .inc .dec .and .or .xor .exch .cas");
  return static_cast<AtomicOp>(op);
}

}  // namespace ptxsim
