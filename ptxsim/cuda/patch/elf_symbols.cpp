// The symbol table of an ELF file (System V ABI, "Symbol Table").
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "ptxsim/cuda/patch/static_runtime.hpp"

namespace ptxsim::cuda {
namespace {

// A file's bytes, mapped.
class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat info {};
    if (fstat(file, &info) == 0 && info.st_size > 0) {
      bytes_ = static_cast<size_t>(info.st_size);
      data_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    close(file);
  }
  ~Mapped() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  // nullptr: not inside of the file.
  template <class T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    if (data_ == MAP_FAILED || offset > bytes_ || count > (bytes_ - offset) / sizeof(T))
      return nullptr;
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(data_) + offset);
  }

 private:
  void* data_ = MAP_FAILED;
  size_t bytes_ = 0;
};

bool is_cuda_name(const char* name) {
  if (std::strncmp(name, "__", 2) == 0) name += 2;
  return std::strncmp(name, "cuda", 4) == 0;
}

}  // namespace

Result<std::map<std::string, FunctionSymbol>> cuda_functions_of(const std::string& path) {
  const auto refusal = [&](const char* what) {
    return Error{ErrorKind::kInput, fmt::format("{}: {}", path, what), {}};
  };
  const Mapped file(path);
  const auto* header = file.at<Elf64_Ehdr>(0);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    return refusal("not a 64-bit ELF file");
  const auto* sections = file.at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return refusal("broken section headers");
  std::map<std::string, FunctionSymbol> functions;
  for (uint32_t i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr& table = sections[i];
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= header->e_shnum) continue;
    const Elf64_Shdr& names = sections[table.sh_link];
    const uint64_t count = table.sh_size / sizeof(Elf64_Sym);
    const auto* symbols = file.at<Elf64_Sym>(table.sh_offset, count);
    const char* strings = file.at<char>(names.sh_offset, names.sh_size);
    if (symbols == nullptr || strings == nullptr || names.sh_size == 0 ||
        strings[names.sh_size - 1] != 0)
      return refusal("broken symbol table");
    for (const Elf64_Sym& symbol : std::span(symbols, count)) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
          symbol.st_name >= names.sh_size)
        continue;
      const char* name = strings + symbol.st_name;
      if (is_cuda_name(name)) functions[name] = {symbol.st_value, symbol.st_size};
    }
  }
  return functions;
}

}  // namespace ptxsim::cuda
