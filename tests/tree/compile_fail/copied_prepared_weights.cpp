// expect: deleted
// Prepared weights own their memory: moved, never copied.
#include <utility>

#include "dualgemm/dualgemm.hpp"

dualgemm::PreparedWeights take(dualgemm::PreparedWeights& weights) {
#ifdef CONTROL
  return std::move(weights);
#else
  return weights;
#endif
}
