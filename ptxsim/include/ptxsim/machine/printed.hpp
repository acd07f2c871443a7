// What kernels print (CUDA C++ Programming Guide, "Formatted Output").
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "ptxsim/machine/launch.hpp"

namespace ptxsim {

struct PrintedText {  // of one call of printf by one thread
  Dim3 ctaid{}, tid{};
  std::string text;
};

// In the order in which this run printed them. As on a GPU the buffer is limited, here by the bytes
// of the texts (cudaLimitPrintfFifoSize: 1 MiB by default), and the oldest are lost.
struct Printed {
  static constexpr uint64_t kMaxBytes = 1 << 20;

  std::deque<PrintedText> texts;
  uint64_t lost = 0;  // texts

  void add(PrintedText text) {
    bytes_ += text.text.size();
    texts.push_back(std::move(text));
    for (; bytes_ > kMaxBytes; ++lost) {
      bytes_ -= texts.front().text.size();
      texts.pop_front();
    }
  }

 private:
  uint64_t bytes_ = 0;
};

}  // namespace ptxsim
