// PTXSIM_VECTOR_CLONES: the compiler makes versions of a function for wider vectors and the loader
// picks one. The loops are plain C++; every version gives the same bits, as no operation of theirs
// may be fused or reordered. Not with sanitizers, whose runtime is not ready when the choice is
// made, and not with clang 14, which has no such attribute for these targets. Where the macro
// PTXSIM_HAS_VECTOR_CLONES is defined, __attribute__((target(...))) makes versions by hand, too.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PTXSIM_HAS_VECTOR_CLONES
#define PTXSIM_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PTXSIM_VECTOR_CLONES
#endif
