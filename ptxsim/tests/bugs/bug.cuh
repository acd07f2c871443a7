// What the files of bugs share.
#pragma once

#include <cstdint>

// REPAIRED compiles the twin that is right: the statement that the bug lacks.
#ifdef REPAIRED
#define REPAIR(statement) statement
#else
#define REPAIR(statement)
#endif

__device__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
