#include "insn/call/extern_function.hpp"

#include <fmt/format.h>

#include <cstring>

#include "machine/memory/addresses.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kLongestText = 1 << 16;

// CUDA C++ Programming Guide, "Assertion": what a GPU prints, then the kernel ends with an error.
// (message, file, line, function, size of a character)
void run_assertfail(const ExternCall& call) {
  const Cta& cta = call.x.cta;
  const Dim3 tid = thread_index(call.x.machine.launch(), call.x.thread_of(call.lane));
  call.x.fault(fmt::format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed",
                           call.text(call.argument(1)), call.argument(2),
                           call.text(call.argument(3)), cta.ctaid[0], cta.ctaid[1], cta.ctaid[2],
                           tid[0], tid[1], tid[2], call.text(call.argument(0))),
               call.lane);
}

void run_malloc(const ExternCall& call) {
  Machine& machine = call.x.machine;
  call.give(
      machine.global().allocate(call.argument(0), machine.options().heap_bytes, call.caller()));
}

void run_free(const ExternCall& call) {
  call.x.machine.global().release(call.argument(0), call.caller());
}

// (handle, value): the handle is the address of the value
// (ptxsim/src/fake_cuda/runtime/graph_conditional.cpp). CUDA leaves undefined what two calls do
// that nothing orders: they race as ordinary stores do.
void run_graph_set_conditional(const ExternCall& call) {
  call.store(call.argument(0), static_cast<uint32_t>(call.argument(1)));
}

const std::vector<ExternFunction>& all() {
  static const std::vector<ExternFunction> functions = {
      {"vprintf", {4}, {8, 8}, run_vprintf},
      {"__assertfail", {}, {8, 8, 4, 8, 8}, run_assertfail},
      {"malloc", {8}, {8}, run_malloc},
      {"free", {}, {8}, run_free},
      {"cudaGraphSetConditional", {}, {8, 4}, run_graph_set_conditional},
  };
  return functions;
}

}  // namespace

uint64_t ExternCall::argument(size_t index) const {
  std::byte bytes[8] = {};
  read_argument(x, site.arguments[index], lane, bytes);
  uint64_t value;
  std::memcpy(&value, bytes, sizeof value);  // little endian
  return value;
}

void ExternCall::give(uint64_t result) const {
  if (site.results.empty()) return;
  std::byte bytes[8];
  std::memcpy(bytes, &result, sizeof bytes);
  write_result(x, site.results[0], lane, bytes);
}

uint64_t ExternCall::load(uint64_t address, uint32_t bytes) const {
  const MemoryAt at = locate(x, {Space::kGeneric, false}, address, bytes, bytes, lane);
  uint64_t value = 0;
  std::memcpy(&value, bytes_to_read(x, at, bytes, AccessKind::kRead, lane), bytes);
  return value;
}

void ExternCall::store(uint64_t address, uint32_t value) const {
  MemoryAt at = locate(x, {Space::kGlobal, false}, address, sizeof value, sizeof value, lane);
  at.value = reinterpret_cast<const std::byte*>(&value);
  std::memcpy(bytes_to_write(x, at, sizeof value, AccessKind::kWrite, lane), &value, sizeof value);
}

std::string ExternCall::text(uint64_t address) const {
  std::string text;
  while (const uint64_t c = load(address + text.size(), 1)) {
    text += static_cast<char>(c);
    if (text.size() > kLongestText)
      x.fault(fmt::format("text at 0x{:x} of more than {} characters", address, kLongestText),
              lane);
  }
  return text;
}

std::string ExternCall::caller() const {
  return fmt::format("{}, {}", to_string(x.machine.place_of(x.insn->statement)),
                     x.machine.actor_of(x.warp, lane));
}

const ExternFunction* find_extern(std::string_view name) {
  for (const ExternFunction& function : all())
    if (function.name == name) return &function;
  return nullptr;
}

Signature signature_of(const ExternFunction& function) {
  return {function.result_bytes, function.param_bytes};
}

void run_extern(Execution& x, const ExternFunction& function, const CallSite& site) {
  x.for_lanes([&](int lane) {
    try {
      function.run({x, site, lane});
    } catch (const Fault& fault) {
      if (fault.lane() >= 0) throw;
      throw Fault(fault.error().message, fault.error().kind, lane);  // of global memory
    }
  });
}

void refuse_unknown(const Execution& x, uint32_t function, int lane) {
  std::string names;
  for (const ExternFunction& f : all())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", f.name);
  x.fault(fmt::format("call of {}, which this module does not define; there are stand-ins for {}",
                      x.program().module->functions[function].body.name, names),
          lane);
}

}  // namespace ptxsim
