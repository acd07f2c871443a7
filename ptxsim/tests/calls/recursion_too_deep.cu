//! {"block": [32], "buffers": [{"name": "out", "type": "s32", "count": 1}], "params": [{"buffer": "out"}],
//!  "expect_error": "call of _Z5depthi at depth 1025; at most 1024 calls may be open; CTA (0,0,0), warp 0, lane 0"}
__device__ __noinline__ int depth(int n) { return n == 5000 ? 0 : 1 + depth(n + 1) * 2; }
extern "C" __global__ void recurse(int* out) { *out = depth(threadIdx.x); }
