// A benchmark of ThunderKittens' for Blackwell with a size of ours, beside its own reference, which
// it prints the distance to and leaves to the reader.
#define main main_with_sizes_of_a_gpu
#include STRANGER
#undef main

#include <sstream>

namespace {

void run() {
#if defined(OF_FP8)
  run_benchmark<config<256, 64, 256, 4, true, 5, 2>>(512, 128, 512, true);
#elif defined(OF_MXFP8)
  run_benchmark<mxfp8_gemm::config<128, 5, 4, 12, 2, true>>(256, 128, 256, true);
#else
  run_benchmark<nvfp4_gemm::config<128, 5, 4, 12, 2, true>>(256, 128, 512, true);
#endif
}

// The number behind `label` in what the benchmark printed; -1: none.
double told(const std::string& text, const std::string& label) {
  const size_t at = text.find(label);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + label.size()));
}

}  // namespace

int main() {
  std::ostringstream printed;
  std::streambuf* const terminal = std::cout.rdbuf(printed.rdbuf());
  run();
  std::cout.rdbuf(terminal);
  const std::string text = printed.str();
  const double mean = told(text, "abs mean:"), most = told(text, "abs max:");
  const double error = told(text, "err mean:"), worst = told(text, "err max:");
  // Both round sums of FP32 to the 8 bits of bf16, and add in different orders.
  const bool is_right = mean > 0 && error >= 0 && error <= mean / 256 && worst <= most / 128;
  std::cout << text << (is_right ? "ThunderKittens: right\n" : "ThunderKittens: wrong\n");
  return is_right ? 0 : 1;
}
