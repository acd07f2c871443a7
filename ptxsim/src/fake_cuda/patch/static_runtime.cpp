#include "fake_cuda/patch/static_runtime.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "fake_cuda/entry_points.hpp"

namespace ptxsim::cuda {
namespace {

constexpr const char* kProgram = "/proc/self/exe";

struct LoadedFile {
  std::string path;
  uint64_t base;
};

int add_file(dl_phdr_info* info, size_t, void* files) {
  std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  auto& all = *static_cast<std::vector<LoadedFile>*>(files);
  if (path.empty() && all.empty()) path = kProgram;  // the first is the program
  if (!path.empty()) all.push_back({path, info->dlpi_addr});
  return 0;
}

// NVIDIA's own shared libraries are no part of the program, and most are large.
bool may_hold_a_runtime(const LoadedFile& file) {
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  for (const char* other : {"libptxsim_cuda", "libcudart.", "libc.", "libm.", "libstdc++.",
                            "libgcc_s.", "ld-linux", "libcublas", "libcudnn", "linux-vdso"})
    if (name.starts_with(other)) return false;
  return true;
}

#if defined(__x86_64__)
// movabs $target, %rax; jmp *%rax: no argument of a function is in %rax but the number of vector
// registers of a variadic one, and none of these is.
constexpr size_t kJumpBytes = 12;

void write_jump(unsigned char* at, const void* target) {
  const uint64_t address = reinterpret_cast<uint64_t>(target);
  at[0] = 0x48, at[1] = 0xb8;
  std::memcpy(at + 2, &address, sizeof address);
  at[10] = 0xff, at[11] = 0xe0;
}
#elif defined(__aarch64__)
// ldr x16, #8; br x16; the address behind them: x16 is free between functions (AAPCS64,
// "General-purpose Registers").
constexpr size_t kJumpBytes = 16;

void write_jump(unsigned char* at, const void* target) {
  const uint32_t code[2] = {0x58000050, 0xd61f0200};
  const uint64_t address = reinterpret_cast<uint64_t>(target);
  std::memcpy(at, code, sizeof code);
  std::memcpy(at + 8, &address, sizeof address);
  __builtin___clear_cache(reinterpret_cast<char*>(at), reinterpret_cast<char*>(at + kJumpBytes));
}
#endif

// Compilers align functions to 16 bytes, and what lies behind a short one is padding.
uint64_t room_of(uint64_t function, uint64_t bytes) {
  constexpr uint64_t kAlignment = 16;
  return function % kAlignment == 0 ? (bytes + kAlignment - 1) / kAlignment * kAlignment : bytes;
}

bool redirect(uint64_t function, uint64_t bytes, const void* target) {
  if (room_of(function, bytes) < kJumpBytes) return false;
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = function / page * page;
  const uint64_t length = (function + kJumpBytes - begin + page - 1) / page * page;
  void* pages = reinterpret_cast<void*>(begin);
  if (mprotect(pages, length, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  write_jump(reinterpret_cast<unsigned char*>(function), target);
  return mprotect(pages, length, PROT_READ | PROT_EXEC) == 0;
}

std::vector<std::string> problems;

}  // namespace

void redirect_static_runtimes() {
  std::vector<LoadedFile> files;
  dl_iterate_phdr(add_file, &files);
  for (const LoadedFile& file : files) {
    if (!may_hold_a_runtime(file)) continue;
    const auto symbols = cuda_symbols_of(file.path);
    if (!symbols.ok()) continue;
    const CudaSymbols& found = symbols.value();
    if (found.functions.count("__cudaRegisterFatBinary") == 0) {
      if (found.has_fatbin && !found.asks_for_runtime)
        problems.push_back(
            fmt::format("{} has kernels and no symbol of CUDA's runtime: it was stripped; "
                        "link with -cudart shared, or keep the symbols",
                        file.path));
      continue;
    }
    for (const auto& [name, symbol] : found.functions) {
      const void* target = find_entry_point(name);
      if (target != nullptr && !redirect(file.base + symbol.value, symbol.bytes, target))
        problems.push_back(fmt::format("{} of {} could not be redirected", name, file.path));
    }
    // A library's constructors have run before this one, so that its kernels are registered with
    // the runtime inside of it: once more. The program's own constructors come later.
    if (file.path != kProgram)
      for (const uint64_t value : found.registrations)
        reinterpret_cast<void (*)()>(file.base + value)();
  }
}

const std::vector<std::string>& redirection_problems() { return problems; }

}  // namespace ptxsim::cuda
