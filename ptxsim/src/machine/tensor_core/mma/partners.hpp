// Which element of B each stored element of a row of A multiplies: the one of its own index, until
// set. A sparse A stores half of its elements.
#pragma once

#include <cstdint>
#include <vector>

namespace ptxsim {

class Partners {
 public:
  Partners(unsigned rows, unsigned k) : rows_(rows), k_(k) {}
  void set(unsigned row, unsigned k, unsigned partner);
  const uint8_t* of(unsigned row) const;

 private:
  unsigned rows_, k_;
  std::vector<uint8_t> partners_;  // empty: all of their own index
};

}  // namespace ptxsim
