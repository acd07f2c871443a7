#include "ptxsim/mutate/outputs.hpp"

#include <fmt/format.h>

namespace ptxsim {
namespace {

std::string byte_text(const Outputs::Buffer& buffer, size_t at) {
  if (!buffer.written.empty() && !buffer.written[at]) return "unwritten";
  return fmt::format("0x{:02x}", static_cast<unsigned>(buffer.data[at]));
}

}  // namespace

std::string difference(const Outputs& unchanged, const Outputs& mutant) {
  for (size_t i = 0; i < unchanged.buffers.size(); ++i) {
    const Outputs::Buffer &want = unchanged.buffers[i], &have = mutant.buffers[i];
    if (want == have) continue;
    for (size_t at = 0; at < want.data.size(); ++at) {
      const std::string a = byte_text(want, at), b = byte_text(have, at);
      if (a != b)
        return fmt::format("{}: byte {} is {}; the unchanged kernel leaves {}", want.name, at, b,
                           a);
    }
  }
  return "";
}

}  // namespace ptxsim
