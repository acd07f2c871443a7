// A benchmark of ThunderKittens' for Blackwell with a size of ours (RUN), beside its own reference,
// which it prints the distance to and leaves to the reader.
#define main main_with_sizes_of_a_gpu
#include STRANGER
#undef main

#include <sstream>

namespace {

// The number behind `label` in what the benchmark printed; -1: none.
double told(const std::string& text, const std::string& label) {
  const size_t at = text.find(label);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + label.size()));
}

}  // namespace

int main() {
  std::ostringstream printed;
  std::streambuf* const terminal = std::cout.rdbuf(printed.rdbuf());
  RUN;
  std::cout.rdbuf(terminal);
  const std::string text = printed.str();
  const double mean = told(text, "abs mean:"), most = told(text, "abs max:");
  const double error = told(text, "err mean:"), worst = told(text, "err max:");
  // Both round sums of FP32 to the 8 bits of bf16, and add in different orders.
  const bool is_right = mean > 0 && error >= 0 && error <= mean / 256 && worst <= most / 128;
  std::cout << text << (is_right ? "ThunderKittens: right\n" : "ThunderKittens: wrong\n");
  return is_right ? 0 : 1;
}
