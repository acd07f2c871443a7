//! {"block": [64], "comment": "one half calls one function, the other half another one, which calls the first; all meet in a barrier inside a function",
//!  "buffers": [{"name": "out", "type": "s32", "count": 64, "expect": [
//!    184, 183, 182, 181, 180, 179, 178, 177, 176, 175, 174, 173, 172, 171, 170, 169,
//!    167, 166, 165, 164, 163, 162, 161, 160, 159, 158, 157, 156, 155, 154, 153, 152,
//!    152, 151, 150, 149, 148, 147, 146, 145, 144, 143, 142, 141, 140, 139, 138, 137,
//!    135, 134, 133, 132, 131, 130, 129, 128, 127, 126, 125, 124, 123, 122, 121, 120]}], "params": [{"buffer": "out"}]}
__device__ __noinline__ int sum_of_half(int value) {
  for (int step = 8; step > 0; step /= 2)
    value += __shfl_xor_sync(0xffffu << (threadIdx.x & 16), value, step);
  return value;
}
__device__ __noinline__ int through_another(int value) { return sum_of_half(value) + 1; }
__device__ __noinline__ int exchanged(int value) {
  __shared__ int values[64];
  values[threadIdx.x] = value;
  __syncthreads();
  return values[63 - threadIdx.x];
}

extern "C" __global__ void diverge(int* out) {
  int value = threadIdx.x;
  if ((threadIdx.x & 16) == 0)
    value += sum_of_half(value & 15);
  else
    value += through_another(value & 15);
  __syncwarp();
  out[threadIdx.x] = exchanged(value);
}
