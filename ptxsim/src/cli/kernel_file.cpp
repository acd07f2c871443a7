#include "cli/kernel_file.hpp"

#include <cstdint>
#include <cstring>

namespace ptxsim::cli {
namespace {

using std::string_view_literals::operator""sv;

constexpr uint16_t kMachineCuda = 190;         // EM_CUDA of the ELF registry
constexpr uint32_t kFatbinMagic = 0xba55ed50;  // fatbinary_section.h of the CUDA toolkit

template <class T>
T read_at(std::string_view contents, size_t offset) {
  T value{};
  if (offset + sizeof value <= contents.size())
    std::memcpy(&value, contents.data() + offset, sizeof value);
  return value;
}

std::string elf_kind(std::string_view contents) {
  constexpr size_t kMachineOffset = 18;  // e_machine
  if (read_at<uint16_t>(contents, kMachineOffset) == kMachineCuda)
    return "a cubin (ELF), which holds machine code of a GPU; cuobjdump -ptx shows the PTX of the "
           "program it is from, nvcc -ptx makes it";
  return "an ELF file (a program, library or object of this host); cuobjdump -ptx shows the PTX in "
         "it, nvcc -ptx makes it";
}

// What follows blanks and the comments of PTX, C++ (//) and LLVM (;).
std::string_view first_text(std::string_view contents) {
  while (!contents.empty()) {
    const size_t begin = contents.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    contents.remove_prefix(begin);
    if (!contents.starts_with("//") && contents[0] != ';') return contents;
    const size_t end = contents.find('\n');
    if (end == std::string_view::npos) return {};
    contents.remove_prefix(end);
  }
  return contents;
}

std::string text_kind(std::string_view contents) {
  const std::string_view text = first_text(contents);
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (text.starts_with('{') || text.starts_with('['))
    return "JSON; the kernel comes first, its case after --case";
  if (has("__global__") || text.starts_with("#include"))
    return "CUDA C++; nvcc -ptx makes PTX of it";
  if (text.starts_with("target datalayout") || text.starts_with("source_filename") ||
      has("\ntarget triple"))
    return "LLVM assembly; llc -march=nvptx64 makes PTX of it";
  if (text.starts_with("module {") || text.starts_with("#loc") || text.starts_with("module attr"))
    return "MLIR; Triton's PTX is kernel.asm[\"ptx\"]";
  return "";
}

}  // namespace

std::string why_not_ptx(std::string_view contents) {
  std::string kind;
  if (contents.starts_with("\177ELF"))
    kind = elf_kind(contents);
  else if (read_at<uint32_t>(contents, 0) == kFatbinMagic)
    kind = "a fatbin; cuobjdump -ptx shows the PTX in it";
  else if (contents.starts_with("!<arch>\n"))
    kind = "an archive of objects; cuobjdump -ptx shows the PTX in it";
  else if (contents.starts_with("BC\xc0\xde"sv))
    kind = "LLVM bitcode; llc -march=nvptx64 makes PTX of it";
  else
    kind = text_kind(contents);
  return kind.empty() ? "" : "is not PTX but " + kind;
}

}  // namespace ptxsim::cli
