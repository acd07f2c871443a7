#include "tools/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/cli/standard_streams.hpp"
#include "tools/cli/terminal.hpp"

namespace dualgemm::cli {
namespace {

constexpr int64_t kBarWidth = 30;

}  // namespace

Progress::Progress(int64_t total)
    : total_(std::max<int64_t>(1, total)), drawable_(can_redraw(facts_of(STDERR_FILENO))) {}

Progress::~Progress() { clear(); }

void Progress::show(int64_t done, const std::string& what) {
  if (!drawable_) return;
  const double share =
      std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0);
  const auto filled = static_cast<size_t>(share * kBarWidth);
  const std::string bar = std::string(filled, '=') + std::string(kBarWidth - filled, ' ');
  const std::string line = fmt::format("[{}] {:3.0f} %  {}", bar, share * 100.0, what);
  // A longer line would wrap, and could not be drawn over.
  print_to_stderr("\r\033[K" +
                  line.substr(0, static_cast<size_t>(std::max(1, stderr_style().width - 1))));
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  print_to_stderr("\r\033[K");
  drawn_ = false;
}

}  // namespace dualgemm::cli
