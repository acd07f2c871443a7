// The symbol table of an ELF file (System V ABI, "Symbol Table").
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "fake_cuda/patch/static_runtime.hpp"

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

// nvcc puts a container into each program that it links: a header alone, where no source has
// kernels.
constexpr uint64_t kEmptyContainer = 16;

bool is_cuda_name(const char* name) {
  if (std::strncmp(name, "__", 2) == 0) name += 2;
  return std::strncmp(name, "cuda", 4) == 0;
}

// A table of names inside of the file that ends with a zero; nullptr: there is none.
const char* strings_of(const Mapped& file, const Elf64_Shdr& section) {
  const char* strings = file.at<char>(section.sh_offset, section.sh_size);
  const bool ends = strings != nullptr && section.sh_size != 0 && strings[section.sh_size - 1] == 0;
  return ends ? strings : nullptr;
}

// False: the table is broken.
bool add_symbols(const Mapped& file, const Elf64_Shdr& table, const Elf64_Shdr& names_section,
                 CudaSymbols& found) {
  const uint64_t count = table.sh_size / sizeof(Elf64_Sym);
  const auto* symbols = file.at<Elf64_Sym>(table.sh_offset, count);
  const char* names = strings_of(file, names_section);
  if (symbols == nullptr || names == nullptr) return false;
  for (const Elf64_Sym& symbol : std::span(symbols, count)) {
    if (symbol.st_name >= names_section.sh_size) continue;
    const char* name = names + symbol.st_name;
    if (std::strstr(name, "__sti____cudaRegisterAll") != nullptr && symbol.st_shndx != SHN_UNDEF &&
        table.sh_type == SHT_SYMTAB)
      found.registrations.push_back(symbol.st_value);
    if (!is_cuda_name(name)) continue;
    if (symbol.st_shndx == SHN_UNDEF)
      found.asks_for_runtime |= std::strcmp(name, "__cudaRegisterFatBinary") == 0;
    else if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
      found.functions[name] = {symbol.st_value, symbol.st_size};
  }
  return true;
}

}  // namespace

Result<CudaSymbols> cuda_symbols_of(const std::string& path) {
  const auto refusal = [&](const char* what) {
    return Error{ErrorKind::kInput, fmt::format("{}: {}", path, what), {}};
  };
  const Mapped file(path);
  const auto* header = file.at<Elf64_Ehdr>(0);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    return refusal("not a 64-bit ELF file");
  const auto* sections = file.at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  if (sections == nullptr || header->e_shstrndx >= header->e_shnum)
    return refusal("broken section headers");
  const Elf64_Shdr& names_section = sections[header->e_shstrndx];
  const char* names = strings_of(file, names_section);
  CudaSymbols found;
  for (const Elf64_Shdr& section : std::span(sections, header->e_shnum)) {
    if (names != nullptr && section.sh_name < names_section.sh_size &&
        std::strcmp(names + section.sh_name, ".nv_fatbin") == 0)
      found.has_fatbin = section.sh_size > kEmptyContainer;
    const bool is_table = section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM;
    if (is_table && section.sh_link < header->e_shnum &&
        !add_symbols(file, section, sections[section.sh_link], found))
      return refusal("broken symbol table");
  }
  return found;
}

}  // namespace ptxsim::cuda
