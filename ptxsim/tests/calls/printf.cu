//! {"block": [3], "expect_printed": "0: one 1.500 -7 0x2a 123456789012 c 50%\n1: two 2.500 -6 0x2b 123456789013 d 50%\n2: one 3.500 -5 0x2c 123456789014 e 50%\nno arguments\nno arguments\nno arguments\n",
//!  "comment": "out[i] is what printf returns: the number of arguments",
//!  "buffers": [{"name": "out", "type": "s32", "count": 6, "expect": [8, 8, 8, 0, 0, 0]}], "params": [{"buffer": "out"}]}
#include <cstdio>

__device__ const char* names[2] = {"one", "two"};

extern "C" __global__ void print(int* out) {
  const int i = threadIdx.x;
  out[i] = printf("%d: %s %.3f %*d 0x%x %lld %c 50%%\n", i, names[i & 1], i + 1.5, 2, i - 7, 42 + i,
                  123456789012ll + i, 'c' + i);
  out[i + 3] = printf("no arguments\n");
}
