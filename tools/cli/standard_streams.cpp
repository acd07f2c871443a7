#include "tools/cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace dualgemm::cli {

void open_standard_streams() noexcept {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number that is free, which is this one. Read only: a write to it is refused.
    if (open("/dev/null", O_RDONLY) < 0) return;
  }
}

void print_to_stderr(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace dualgemm::cli
