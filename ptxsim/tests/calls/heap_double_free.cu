//! {"block": [2], "expect_error": "for the second time; it is at offset 0 of the 8 bytes that"}
extern "C" __global__ void twice() {
  __shared__ void* memory;
  if (threadIdx.x == 0) memory = malloc(8);
  __syncthreads();
  free(memory);
}
