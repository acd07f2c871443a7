#include "machine/registers/undefined.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace ptxsim {
namespace {

bool only_computes(const Execution& x, const Insn& insn) {
  return x.program().traits_of(insn).has(Trait::kComputes);
}

// Calls f(first byte, bits) for the bits of the lanes in a register of `bytes` bytes; a predicate
// has one bit a lane.
template <class F>
void for_bits_of_lanes(size_t bytes, uint32_t lanes, F&& f) {
  const size_t width = bytes / kWarpSize;
  if (width == 0) {
    for (size_t i = 0; i < 4; ++i) f(i, static_cast<uint8_t>(lanes >> (8 * i)));
    return;
  }
  for (; lanes != 0; lanes &= lanes - 1)
    for (size_t i = 0; i < width; ++i)
      f(width * static_cast<size_t>(std::countr_zero(lanes)) + i, uint8_t{0xff});
}

uint32_t undefined_lanes(const UndefinedValues::Value& value) {
  const size_t width = value.bits.size() / kWarpSize;
  uint32_t lanes = 0;
  if (width == 0) {
    std::memcpy(&lanes, value.bits.data(), sizeof lanes);
    return lanes;
  }
  for (size_t i = 0; i < value.bits.size(); ++i)
    if (value.bits[i] != 0) lanes |= 1u << (i / width);
  return lanes;
}

// The undefined bits of `lanes` of a register that is written become `bits`, of which others are 0.
void set_undefined(UndefinedValues& values, const RegisterUse& use, uint32_t lanes,
                   const std::vector<uint8_t>& bits, const std::string& read) {
  auto found = values.registers.find(use.at);
  if (found == values.registers.end()) {
    if (std::all_of(bits.begin(), bits.end(), [](uint8_t b) { return b == 0; })) return;
    found = values.registers
                .emplace(use.at, UndefinedValues::Value{std::vector<uint8_t>(use.bytes), read})
                .first;
  }
  UndefinedValues::Value& value = found->second;
  for_bits_of_lanes(use.bytes, lanes, [&](size_t at, uint8_t mask) {
    value.bits[at] = static_cast<uint8_t>((value.bits[at] & ~mask) | (bits[at] & mask));
  });
  if (undefined_lanes(value) == 0)
    values.registers.erase(found);
  else
    value.read = read;
}

[[noreturn]] void refuse(const Execution& x, const UndefinedValues::Value& value, uint32_t lanes) {
  x.fault(fmt::format("uses the result of a {}", value.read), std::countr_zero(lanes));
}

const UndefinedValues::Value* find_undefined(const Execution& x, uint32_t at) {
  const auto found = x.warp.undefined->registers.find(at);
  return found == x.warp.undefined->registers.end() ? nullptr : &found->second;
}

// The registers of a statement, each once, with their contents.
struct Saved {
  RegisterUse use;
  const UndefinedValues::Value* undefined;  // of a source
  std::vector<std::byte> before, first, differs;
};

std::vector<Saved> save_registers(const Execution& x, const Insn& insn) {
  std::vector<Saved> all;
  for (const RegisterUse& use : x.program().uses_of(insn)) {
    const std::byte* from = x.registers + use.at;
    auto same =
        std::find_if(all.begin(), all.end(), [&](const Saved& s) { return s.use.at == use.at; });
    if (same == all.end()) {
      all.push_back(
          {use, nullptr, {from, from + use.bytes}, {}, std::vector<std::byte>(use.bytes)});
      same = std::prev(all.end());
    }
    same->use.is_write |= use.is_write;
    if (!use.is_write) same->undefined = find_undefined(x, use.at);
  }
  return all;
}

// What undefined bits are tried with: patterns that are small, large, negative or NaN as integers
// and as floats, and the other operands, which decide whether a comparison can hold.
constexpr int kFills[] = {0x00, 0xff, 0x3c, 0x7f, 0xfe};
constexpr size_t kOperands = std::extent_v<decltype(Insn::slot)>;

// The bytes of an operand that stands for those of an undefined register; null: it has not as many.
const std::byte* bytes_of_operand(const Execution& x, Slot slot, const RegisterUse& use) {
  if (!slot.present() || slot.at == use.at) return nullptr;
  const size_t at = slot.at & ~Slot::kConstant;
  const size_t end = slot.is_constant() ? x.program().constants.size() : x.program().register_bytes;
  return at + use.bytes > end ? nullptr : x.source<std::byte>(slot);
}

// The result for several contents of the undefined bits; they are undefined where it differs.
void compute(Execution& x, const Insn& insn, const std::string& read) {
  std::vector<Saved> all = save_registers(x, insn);
  const uint32_t carry = x.warp.carry;
  Stats& stats = x.machine.stats();
  const uint64_t mmas = stats.mma_instructions, multiply_adds = stats.mma_multiply_adds;
  const auto restore = [&] {
    x.warp.carry = carry;
    stats.mma_instructions = mmas;
    stats.mma_multiply_adds = multiply_adds;
    for (const Saved& s : all) std::copy(s.before.begin(), s.before.end(), x.registers + s.use.at);
  };
  const auto fill = [&](const Saved& s, auto&& byte) {
    for (size_t i = 0; s.undefined != nullptr && i < s.before.size(); ++i) {
      const auto unknown = static_cast<std::byte>(s.undefined->bits[i]);
      std::byte& to = x.registers[s.use.at + i];
      to = (to & ~unknown) | (byte(i) & unknown);
    }
  };
  // Where some contents make the statement fail, something depends on them.
  const auto execute_or_refuse = [&] {
    try {
      insn.execute(x, insn);
    } catch (const Fault&) {
      restore();
      for (const Saved& s : all)
        if (s.undefined != nullptr) refuse(x, *s.undefined, undefined_lanes(*s.undefined));
      throw;
    }
  };
  const auto execute = [&] {
    execute_or_refuse();
    for (Saved& s : all) {
      if (!s.use.is_write) continue;
      const std::byte* result = x.registers + s.use.at;
      if (s.first.empty()) s.first.assign(result, result + s.use.bytes);
      for (size_t i = 0; i < s.first.size(); ++i) s.differs[i] |= s.first[i] ^ result[i];
    }
    restore();
  };
  for (const int pattern : kFills) {
    for (const Saved& s : all) fill(s, [&](size_t) { return static_cast<std::byte>(pattern); });
    execute();
  }
  for (size_t operand = 1; operand < kOperands; ++operand) {
    bool any = false;
    for (const Saved& s : all) {
      const std::byte* from = bytes_of_operand(x, insn.slot[operand], s.use);
      if (from == nullptr) continue;
      any |= s.undefined != nullptr;
      fill(s, [&](size_t i) { return from[i]; });
    }
    if (any) execute();
  }
  // The contents as they are, a NaN pattern, come last and stay.
  execute_or_refuse();
  for (const Saved& s : all) {
    if (!s.use.is_write) continue;
    std::vector<uint8_t> bits(s.differs.size());
    std::memcpy(bits.data(), s.differs.data(), bits.size());
    set_undefined(*x.warp.undefined, s.use, x.mask, bits, read);
  }
}

}  // namespace

void note_undefined(const Execution& x, Slot destination, int lane, uint32_t bytes, bool is_signed,
                    uint32_t unwritten, const std::string& read) {
  for (const RegisterUse& use : x.program().uses_of(*x.insn)) {
    if (!use.is_write || use.at != destination.at) continue;
    const size_t width = use.bytes / kWarpSize, first = width * static_cast<size_t>(lane);
    std::vector<uint8_t> bits(use.bytes);
    for (size_t i = 0; i < width; ++i) {
      const size_t from = i < bytes ? i : bytes - 1;
      if ((i < bytes || is_signed) && (unwritten >> from & 1) != 0) bits[first + i] = 0xff;
    }
    if (x.warp.undefined == nullptr) x.warp.undefined = std::make_shared<UndefinedValues>();
    set_undefined(*x.warp.undefined, use, 1u << lane, bits, read);
  }
}

uint32_t undefined_bytes(const Execution& x, Slot source, uint32_t width, int lane) {
  const UndefinedValues::Value* value =
      source.is_constant() ? nullptr : find_undefined(x, source.at);
  uint32_t found = 0;
  for (uint32_t i = 0; value != nullptr && i < width; ++i) {
    const size_t lane_bytes = value->bits.size() / kWarpSize;
    if (i < lane_bytes && value->bits[lane_bytes * static_cast<size_t>(lane) + i] != 0)
      found |= 1u << i;
  }
  return found;
}

void refuse_undefined(const Execution& x, Slot source, int lane) {
  const UndefinedValues::Value* value =
      source.is_constant() ? nullptr : find_undefined(x, source.at);
  if (value != nullptr && (undefined_lanes(*value) >> lane & 1) != 0) refuse(x, *value, 1u << lane);
}

void refuse_undefined_guard(const Execution& x, const Insn& insn, uint32_t lanes) {
  const UndefinedValues::Value* guard = find_undefined(x, insn.guard.at);
  if (guard == nullptr || only_computes(x, insn)) return;
  lanes &= undefined_lanes(*guard);
  if (lanes != 0) refuse(x, *guard, lanes);
}

void note_undefined_guard(const Execution& x, const Insn& insn, uint32_t lanes) {
  const UndefinedValues::Value* guard = find_undefined(x, insn.guard.at);
  if (guard == nullptr || !only_computes(x, insn)) return;
  lanes &= undefined_lanes(*guard);
  const std::string read = guard->read;
  for (const RegisterUse& use : x.program().uses_of(insn))
    if (use.is_write)
      set_undefined(*x.warp.undefined, use, lanes, std::vector<uint8_t>(use.bytes, 0xff), read);
}

Outcome execute_with_undefined(Execution& x, const Insn& insn) {
  for (const RegisterUse& use : x.program().uses_of(insn)) {
    const UndefinedValues::Value* value = use.is_write ? nullptr : find_undefined(x, use.at);
    if (value == nullptr || use.at == insn.guard.at) continue;
    const uint32_t lanes = undefined_lanes(*value) & x.mask;
    if (lanes == 0) continue;
    if (only_computes(x, insn)) {
      compute(x, insn, std::string(value->read));
      return Outcome::kNext;
    }
    if (!x.program().traits_of(insn).has(Trait::kSeesUndefined)) refuse(x, *value, lanes);
  }
  for (const RegisterUse& use : x.program().uses_of(insn))
    if (use.is_write && find_undefined(x, use.at) != nullptr)
      set_undefined(*x.warp.undefined, use, x.mask, std::vector<uint8_t>(use.bytes), {});
  return insn.execute(x, insn);
}

}  // namespace ptxsim
