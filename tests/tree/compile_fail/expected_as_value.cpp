// expect: no viable|cannot convert|invalid initialization
// An Expected<T> is not a T: the value is reached only by asking for it.
#include "dualgemm/dualgemm.hpp"

int64_t workspace(const dualgemm::Expected<dualgemm::Plan>& plan) {
#ifdef CONTROL
  return plan ? plan->workspace_bytes : 0;
#else
  const dualgemm::Plan& value = plan;
  return value.workspace_bytes;
#endif
}
