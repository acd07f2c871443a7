//! {"block": [8], "comment": "odd threads call other functions than even ones, through tables and a virtual call",
//!  "buffers": [{"name": "out", "type": "s32", "count": 8, "expect": [111, 216, 113, 256, 115, 296, 117, 336]}], "params": [{"buffer": "out"}]}
typedef int (*Function)(int);

__device__ __noinline__ int plus_one(int x) { return x + 1; }
__device__ __noinline__ int twenty_times(int x) { return 20 * x; }
__device__ Function table[2] = {plus_one, twenty_times};
__constant__ Function constant_table[2] = {twenty_times, plus_one};

struct Base {
  __device__ virtual int value(int x) const { return x; }
};
struct Derived : Base {
  int more;
  __device__ explicit Derived(int m) : more(m) {}
  __device__ int value(int x) const override { return x + more; }
};
__device__ __noinline__ int value_of(const Base& object, int x) { return object.value(x); }

extern "C" __global__ void call(int* out) {
  const int i = threadIdx.x;
  const Derived derived(180);
  const Base base;
  const int first = table[i & 1](i);                       // 1 + i, or 20 i
  const int second = constant_table[i & 1](5);             // 100, or 6
  const int third = value_of(i & 1 ? derived : base, 10);  // 10, or 190
  out[i] = first + second + third;
}
