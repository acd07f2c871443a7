#include "machine/registers/register_files.hpp"

#include <vector>

namespace ptxsim {
namespace {

constexpr size_t kKeptLines = (size_t{256} << 20) / sizeof(RegisterLine);

// Register files of one size, that of the program that ran last.
struct Kept {
  size_t lines = 0;
  std::vector<std::unique_ptr<RegisterLine[]>> files;
};

Kept& kept() {
  thread_local Kept of_this_thread;
  return of_this_thread;
}

}  // namespace

void KeepRegisterFile::operator()(RegisterLine* file) const {
  std::unique_ptr<RegisterLine[]> owned(file);
  Kept& own = kept();
  if (own.lines == lines && (own.files.size() + 1) * lines <= kKeptLines)
    own.files.push_back(std::move(owned));
}

RegisterFile take_register_file(size_t lines) {
  Kept& own = kept();
  if (own.lines != lines) {
    own.files.clear();
    own.lines = lines;
  }
  if (own.files.empty())
    return {std::make_unique_for_overwrite<RegisterLine[]>(lines).release(), {lines}};
  RegisterFile file(own.files.back().release(), {lines});
  own.files.pop_back();
  return file;
}

}  // namespace ptxsim
