// What the files of bugs share.
#pragma once

#include <cstdint>

// REPAIRED compiles the twin that is right: it has the statement that the bug lacks, and lacks what
// only the bug has.
#ifdef REPAIRED
#define REPAIR(statement) statement
#define BUG(statement)
#else
#define REPAIR(statement)
#define BUG(statement) statement
#endif

__device__ inline uint32_t shared_address(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
