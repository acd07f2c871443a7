// Programs with NVIDIA's runtime linked into them (nvcc's default, libcudart_static): no symbol of
// theirs can be interposed, so the first bytes of their functions become jumps to the functions of
// this library. The names come from the symbol table of the file, which a stripped program has not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ptxsim/error.hpp"

namespace ptxsim::cuda {

struct FunctionSymbol {
  uint64_t value = 0;  // offset from where the file is loaded
  uint64_t bytes = 0;
};

struct CudaSymbols {
  std::map<std::string, FunctionSymbol>
      functions;                        // "cuda..." and "__cuda..." that the file defines
  std::vector<uint64_t> registrations;  // nvcc's start-up functions, one a source
  bool has_fatbin = false;              // kernels: in a section .nv_fatbin
  bool asks_for_runtime = false;        // of the loader, by __cudaRegisterFatBinary
};
// An Error: no ELF file of this machine.
Result<CudaSymbols> cuda_symbols_of(const std::string& path);

// Looks at the program and at every library that is loaded.
void redirect_static_runtimes();
// What could not be redirected, for the report.
const std::vector<std::string>& redirection_problems();

}  // namespace ptxsim::cuda
