// Stand-ins for functions that modules declare and CUDA has: vprintf, __assertfail, malloc, free,
// and cudaGraphSetConditional.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "insn/call/call_site.hpp"
#include "machine/execution.hpp"

namespace ptxsim {

// One lane's call.
struct ExternCall {
  Execution& x;
  const CallSite& site;
  int lane;

  uint64_t argument(size_t index) const;  // zero-extended
  void give(uint64_t result) const;
  // Bytes at a generic address, with all checks that a load has.
  uint64_t load(uint64_t address, uint32_t bytes) const;
  void store(uint64_t address, uint32_t value) const;  // in global memory, likewise
  std::string text(uint64_t address) const;            // up to its NUL; a Fault when it is too long
  std::string caller() const;  // "kernel.ptx:12, CTA (0,0,0), warp 0, lane 3"
};

struct ExternFunction {
  std::string_view name;
  std::vector<uint64_t> result_bytes, param_bytes;
  void (*run)(const ExternCall& call);
};

const ExternFunction* find_extern(std::string_view name);  // nullptr: there is none
Signature signature_of(const ExternFunction& function);

// For the lanes of the mask, one after the other.
void run_extern(Execution& x, const ExternFunction& function, const CallSite& site);

// A Fault that names the function; `function`: index into Module::functions.
[[noreturn]] void refuse_unknown(const Execution& x, uint32_t function, int lane);

void run_vprintf(const ExternCall& call);

}  // namespace ptxsim
