// A progress bar on stderr, drawn only when stderr is a terminal that can draw over a line.
#pragma once

#include <cstdint>
#include <string>

namespace dualgemm::cli {

class Progress {
 public:
  explicit Progress(int64_t total);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of total steps are finished, `what` begins.
  void show(int64_t done, const std::string& what);
  // Wipes the line, so that other output may follow; the next show() draws again.
  void clear();

 private:
  int64_t total_;
  bool drawable_;
  bool drawn_ = false;
};

}  // namespace dualgemm::cli
