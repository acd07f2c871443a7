//! {"block": [40], "comment": "the Fibonacci numbers, each thread to its own depth; then a list that lies in the frames",
//!  "buffers": [{"name": "out", "type": "s32", "count": 80, "expect": [
//!    0, 1, 1, 2, 3, 5, 8, 13, 0, 1, 1, 2, 3, 5, 8, 13, 0, 1, 1, 2, 3, 5, 8, 13, 0, 1, 1, 2, 3, 5, 8, 13, 0, 1, 1, 2, 3, 5, 8, 13,
//!    0, 1, 3, 6, 10, 15, 21, 28, 36, 45, 0, 1, 3, 6, 10, 15, 21, 28, 36, 45,
//!    0, 1, 3, 6, 10, 15, 21, 28, 36, 45, 0, 1, 3, 6, 10, 15, 21, 28, 36, 45]}], "params": [{"buffer": "out"}]}
struct Node {
  int value;
  const Node* outer;
};

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__device__ __noinline__ int sum_of_frames(int n, const Node* outer) {
  if (n >= 0) {
    const Node node{n, outer};
    return sum_of_frames(n - 1, &node);
  }
  int sum = 0;
  for (; outer != nullptr; outer = outer->outer) sum += outer->value;
  return sum;
}

extern "C" __global__ void recurse(int* out) {
  out[threadIdx.x] = fibonacci(threadIdx.x & 7);
  out[40 + threadIdx.x] = sum_of_frames(threadIdx.x % 10, nullptr);
}
