//! {"block": [4], "buffers": [{"name": "out", "type": "s32", "count": 4, "expect": [0, 1, 3, 6]}], "params": [{"buffer": "out"}]}
__device__ __noinline__ int sum(const int* values, int count) {
  int total = 0;
  for (int i = 0; i <= count; ++i) total += values[i];
  return total;
}
extern "C" __global__ void allocate(int* out) {
  const int count = threadIdx.x;
  int* values = static_cast<int*>(alloca((count + 1) * sizeof(int)));
  for (int i = 0; i <= count; ++i) values[i] = i;
  out[threadIdx.x] = sum(values, count);
}
