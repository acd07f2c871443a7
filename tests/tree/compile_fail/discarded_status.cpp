// expect: unused-result|nodiscard
// A caller who drops an error must hear about it.
#include "dualgemm/dualgemm.hpp"

void caller(const dualgemm::Problem& problem) {
#ifdef CONTROL
  (void)problem;
#else
  dualgemm::validate(problem);
#endif
}
