// How functions are marked, and which images may hold the code of one architecture. Plain C++
// compilers see only what the host shares with the kernels.
#pragma once

#ifdef __CUDACC__
#define DUALGEMM_DEVICE __device__ __forceinline__
#define DUALGEMM_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define DUALGEMM_HOST_DEVICE inline
#endif

// 1 in images for sm_100a, sm_103a, the family target sm_100f and sm_110a, and only there: the
// block-scaled tcgen05.mma is legal in no other (PTX ISA 8.8, "tcgen05.mma", target notes; of
// sm_110a ptxas 13.0 takes it).
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL) ||       \
    defined(__CUDA_ARCH_FEAT_SM110_ALL) ||                                              \
    (defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000 && \
     __CUDA_ARCH_FAMILY_SPECIFIC__ < 1100)
#define DUALGEMM_TARGET_SM100 1
#else
#define DUALGEMM_TARGET_SM100 0
#endif

// 1 in images for sm_90a: wgmma and setmaxnreg are legal in no other (PTX ISA 8.0, target notes).
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define DUALGEMM_TARGET_SM90 1
#else
#define DUALGEMM_TARGET_SM90 0
#endif

// 1 in images for sm_120a, sm_121a and the family target sm_120f: the block-scaled mma.sync is
// legal in no other (PTX ISA 8.8, "mma", target notes).
#if defined(__CUDA_ARCH_FEAT_SM120_ALL) || defined(__CUDA_ARCH_FEAT_SM121_ALL) ||       \
    (defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1200 && \
     __CUDA_ARCH_FAMILY_SPECIFIC__ < 1300)
#define DUALGEMM_TARGET_SM120 1
#else
#define DUALGEMM_TARGET_SM120 0
#endif
