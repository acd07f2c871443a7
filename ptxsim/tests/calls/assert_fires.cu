//! {"block": [64], "buffers": [{"name": "in", "type": "s32", "count": 64, "iota": true}], "params": [{"buffer": "in"}],
//!  "expect_error": "assert_fires.cu:5: void is_below(int, int): block: [0,0,0], thread: [40,0,0] Assertion `value < limit` failed; CTA (0,0,0), warp 1, lane 8: 'call.uni __assertfail"}
#include <cassert>

__device__ __noinline__ void is_below(int value, int limit) { assert(value < limit); }
extern "C" __global__ void check(const int* in) { is_below(in[threadIdx.x], 40); }
