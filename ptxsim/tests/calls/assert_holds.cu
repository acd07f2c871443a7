//! {"block": [64], "buffers": [{"name": "in", "type": "s32", "count": 64, "iota": true}], "params": [{"buffer": "in"}]}
#include <cassert>

extern "C" __global__ void check(const int* in) { assert(in[threadIdx.x] < 64); }
