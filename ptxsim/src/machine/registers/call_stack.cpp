#include "machine/registers/call_stack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/execution.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

const std::string& name_of(const Program& program, const CalledFunction& function) {
  return program.module->functions[function.function].body.name;
}

CallStack& stack_of(Execution& x) {
  if (!x.warp.calls) {
    x.warp.calls = std::make_shared<CallStack>();
    x.warp.calls->active.assign(x.program().functions.size(), 0);
  }
  return *x.warp.calls;
}

uint64_t bytes_of(const std::vector<CallPlace>& places) {
  uint64_t bytes = 0;
  for (const CallPlace& place : places) bytes += place.bytes;
  return bytes;
}

std::byte* lane_of_register(const Execution& x, Slot slot, uint64_t bytes, int lane) {
  return x.registers + slot.at + bytes * static_cast<uint64_t>(lane);
}

// Calls f(bytes of the lane's value) for each register of the function but predicates, which
// g(mask word) gets; addresses of the frame are registers too.
template <class F, class G>
void for_registers(const Execution& x, const CalledFunction& function, int lane, F&& f, G&& g) {
  const auto& registers = x.program().entry->registers;
  for (uint32_t i = 0; i < function.num_registers; ++i) {
    const Register& reg = registers[function.first_register + i];
    if (reg.type == Type::kPred)
      g(reinterpret_cast<uint32_t*>(x.registers + reg.offset));
    else
      f(lane_of_register(x, {reg.offset}, bytes_of(reg.type), lane), bytes_of(reg.type));
  }
  for (const FrameAddress& address : function.frame_addresses)
    f(lane_of_register(x, address.slot, address.bytes, lane), address.bytes);
}

std::vector<std::byte> save(const Execution& x, const CalledFunction& function, int lane) {
  std::vector<std::byte> saved;
  for_registers(
      x, function, lane,
      [&](const std::byte* value, size_t bytes) {
        saved.insert(saved.end(), value, value + bytes);
      },
      [&](const uint32_t* mask) { saved.push_back(static_cast<std::byte>(*mask >> lane & 1)); });
  return saved;
}

void restore(const Execution& x, const CalledFunction& function, int lane,
             const std::vector<std::byte>& saved) {
  const std::byte* from = saved.data();
  for_registers(
      x, function, lane,
      [&](std::byte* value, size_t bytes) {
        std::memcpy(value, from, bytes);
        from += bytes;
      },
      [&](uint32_t* mask) {
        *mask = (*mask & ~(1u << lane)) | static_cast<uint32_t>(*from++) << lane;
      });
}

// An unwritten register holds NaN, as at the start of a warp.
void poison(const Execution& x, const CalledFunction& function) {
  if (x.mask == 0xffffffffu) {
    std::fill_n(reinterpret_cast<uint32_t*>(x.registers + function.first_register_byte),
                function.register_bytes / 4, kPoisonWord);
    return;
  }
  x.for_lanes([&](int lane) {
    for_registers(
        x, function, lane,
        [](std::byte* value, size_t bytes) {
          for (size_t i = 0; i < bytes; ++i)
            value[i] = static_cast<std::byte>(kPoisonWord >> (8 * (i % 4)));
        },
        [&](uint32_t* mask) { *mask = (*mask & ~(1u << lane)) | (kPoisonWord & 1u << lane); });
  });
}

// R8: the registers of an unfinished tcgen05.ld or wgmma.mma_async cannot be given to a new
// activation.
void refuse_owned(const Execution& x, const CalledFunction& function) {
  for (const Warp::OwnedRange& owned : x.warp.owned) {
    if (owned.at >= function.first_register_byte + function.register_bytes ||
        owned.at + owned.bytes <= function.first_register_byte)
      continue;
    x.fault(fmt::format(
        "call of {} while a register of an unfinished '{}' in it has not been waited for (R8)",
        name_of(x.program(), function), x.program().entry->statements[owned.statement].text));
  }
}

void push_frame(Execution& x, CallStack& stack, uint32_t index, const CallSite& site, int lane) {
  const CalledFunction& function = x.program().functions[index];
  std::vector<CallFrame>& frames = stack.frames[lane];
  if (frames.size() >= kMaxCallDepth)
    x.fault(fmt::format("call of {} at depth {}; at most {} calls may be open",
                        name_of(x.program(), function), frames.size() + 1, kMaxCallDepth),
            lane);
  const uint64_t top = x.warp.local_top[lane];
  const uint64_t base = round_up(top, function.frame_alignment);
  set_local_top(x, lane, base + function.frame_bytes);
  std::byte* frame = x.warp.local_at(lane, base);
  for (uint64_t i = 0; i < function.frame_bytes; ++i)
    frame[i] = static_cast<std::byte>(kPoisonWord >> (8 * (i % 4)));
  CallFrame pushed{&function, &site, x.insn->statement, base, top, false, {}};
  if ((stack.active[index] >> lane & 1) != 0) {
    pushed.has_outer = true;
    pushed.outer = save(x, function, lane);
  }
  stack.active[index] |= 1u << lane;
  frames.push_back(std::move(pushed));
}

}  // namespace

uint64_t frame_base(const Warp& warp, int lane) {
  return !warp.calls || warp.calls->frames[lane].empty() ? 0 : warp.calls->frames[lane].back().base;
}

void set_local_top(const Execution& x, int lane, uint64_t top) {
  Warp& warp = x.warp;
  if (top > kMaxLocalBytes)
    x.fault(fmt::format("{} bytes of local memory are needed here; a thread has at most {}", top,
                        kMaxLocalBytes),
            lane);
  if (top > warp.local_stride) {
    const uint64_t stride =
        std::min(kMaxLocalBytes, std::max(2 * warp.local_stride, round_up(top, 64)));
    std::vector<std::byte> larger(stride * kWarpSize);
    for (uint64_t i = 0; i < kWarpSize; ++i)
      std::copy_n(warp.local.begin() + static_cast<ptrdiff_t>(i * warp.local_stride),
                  warp.local_top[i], larger.begin() + static_cast<ptrdiff_t>(i * stride));
    warp.local = std::move(larger);
    warp.local_stride = stride;
  }
  warp.local_top[lane] = top;
}

void read_argument(const Execution& x, const CallPlace& place, int lane, std::byte* to) {
  const std::byte* from =
      place.slot.present()
          ? x.source<std::byte>(place.slot) + place.bytes * static_cast<uint64_t>(lane)
          : x.warp.local_at(lane, frame_base(x.warp, lane) + place.offset);
  std::memcpy(to, from, place.bytes);
}

void write_result(Execution& x, const CallPlace& place, int lane, const std::byte* from) {
  if (place.bytes == 0) return;
  std::byte* to = place.slot.present()
                      ? lane_of_register(x, place.slot, place.bytes, lane)
                      : x.warp.local_at(lane, frame_base(x.warp, lane) + place.offset);
  std::memcpy(to, from, place.bytes);
}

void enter_function(Execution& x, uint32_t index, const CallSite& site) {
  const CalledFunction& function = x.program().functions[index];
  if (!x.warp.owned.empty()) refuse_owned(x, function);
  CallStack& stack = stack_of(x);
  const uint64_t bytes = bytes_of(site.arguments);
  stack.values.resize(bytes * kWarpSize);
  x.for_lanes([&](int lane) {
    std::byte* values = stack.values.data() + bytes * static_cast<uint64_t>(lane);
    for (const CallPlace& place : site.arguments) {
      read_argument(x, place, lane, values);
      values += place.bytes;
    }
    push_frame(x, stack, index, site, lane);
  });
  poison(x, function);
  x.for_lanes([&](int lane) {
    const std::byte* values = stack.values.data() + bytes * static_cast<uint64_t>(lane);
    for (const CallPlace& place : function.params) {
      write_result(x, place, lane, values);  // into the new frame
      values += place.bytes;
    }
    for (const FrameAddress& address : function.frame_addresses) {
      const uint64_t value = frame_base(x.warp, lane) + address.offset;
      std::memcpy(lane_of_register(x, address.slot, address.bytes, lane), &value,
                  address.bytes);  // little endian
    }
  });
}

bool leave_function(Execution& x, uint32_t index, uint32_t& where) {
  const CalledFunction& function = x.program().functions[index];
  if (function.is_noreturn)
    x.fault(fmt::format("{} is .noreturn, and returns", name_of(x.program(), function)),
            x.first_lane());
  CallStack& stack = *x.warp.calls;
  std::vector<std::byte>& values = stack.values;
  values.resize(bytes_of(function.results));
  bool is_first = true, same = true;
  x.for_lanes([&](int lane) {
    std::byte* to = values.data();
    for (const CallPlace& place : function.results) {
      read_argument(x, place, lane, to);
      to += place.bytes;
    }
    const CallFrame frame = std::move(stack.frames[lane].back());
    stack.frames[lane].pop_back();
    x.warp.local_top[lane] = frame.caller_top;
    if (frame.has_outer)
      restore(x, function, lane, frame.outer);
    else
      stack.active[index] &= ~(1u << lane);
    const std::byte* from = values.data();
    for (size_t i = 0; i < function.results.size(); ++i) {
      if (i < frame.site->results.size()) write_result(x, frame.site->results[i], lane, from);
      from += function.results[i].bytes;
    }
    x.warp.pc[lane] = frame.call + 1;
    same &= is_first || where == frame.call + 1;
    where = frame.call + 1;
    is_first = false;
  });
  return same;
}

std::string callers_text(const Machine& machine, const Warp& warp, int lane) {
  constexpr size_t kMost = 8;
  if (!warp.calls || lane < 0 || warp.calls->frames[lane].empty()) return {};
  const std::vector<CallFrame>& frames = warp.calls->frames[lane];
  std::string text;
  for (size_t i = frames.size(); i > 0 && frames.size() - i < kMost; --i)
    text +=
        (text.empty() ? "; called at " : ", ") + to_string(machine.place_of(frames[i - 1].call));
  if (frames.size() > kMost) text += fmt::format(" and {} more", frames.size() - kMost);
  return text;
}

}  // namespace ptxsim
