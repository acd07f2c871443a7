#include "fake_cuda/machine_code.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fake_cuda/fatbin/container.hpp"
#include "fake_cuda/fatbin/decompress.hpp"

namespace ptxsim::cuda {
namespace {

namespace fs = std::filesystem;

// Cubins end with the table of their sections or of their segments.
uint64_t elf_bytes(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return std::max(header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize,
                  header.e_phoff + uint64_t{header.e_phnum} * header.e_phentsize);
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string ptx_of_code(const std::vector<std::string>& places, const void* image, uint64_t bytes) {
  for (const std::string& place : places) {
    std::error_code none;
    constexpr auto kOptions = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(place, kOptions, none), end; at != end;
         at.increment(none)) {
      if (at->path().extension() != ".cubin" || at->file_size(none) != bytes) continue;
      const std::string code = text_of(at->path());
      if (code.size() != bytes || std::memcmp(code.data(), image, bytes) != 0) continue;
      if (std::string ptx = text_of(fs::path(at->path()).replace_extension(".ptx")); !ptx.empty())
        return ptx;
    }
  }
  return {};
}

}  // namespace

// An image may be PTX of any length, so that nothing behind a zero is read.
bool is_machine_code(const void* image) {
  return std::strncmp(static_cast<const char*>(image), ELFMAG, SELFMAG) == 0;
}

std::string ptx_beside(const std::vector<std::string>& places, const void* image) {
  if (is_machine_code(image)) return ptx_of_code(places, image, elf_bytes(image));
  auto entries = read_fatbin({static_cast<const std::byte*>(image), fatbin_bytes(image)});
  if (!entries.ok()) return {};
  for (const FatbinEntry& entry : *entries) {
    if (entry.kind != FatbinKind::kElf) continue;
    auto code = decompress(entry);
    if (!code.ok() || code->size() < sizeof(Elf64_Ehdr)) continue;
    const uint64_t bytes = elf_bytes(code->data());
    if (bytes > code->size()) continue;
    if (std::string ptx = ptx_of_code(places, code->data(), bytes); !ptx.empty()) return ptx;
  }
  return {};
}

}  // namespace ptxsim::cuda
