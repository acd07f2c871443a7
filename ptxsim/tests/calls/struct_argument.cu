//! {"block": [32], "comment": "tripled, then its parts added with the index",
//!  "buffers": [{"name": "out", "type": "f64", "count": 32, "expect": [
//!    42, 47, 52, 57, 62, 67, 72, 77, 82, 87, 92, 97, 102, 107, 112, 117,
//!    122, 127, 132, 137, 142, 147, 152, 157, 162, 167, 172, 177, 182, 187, 192, 197]}], "params": [{"buffer": "out"}]}
struct Sample {
  char tag;
  int count;
  double weight;
  float parts[5];
};

__device__ __noinline__ Sample tripled(Sample s, short by) {
  s.count *= by;
  s.weight *= by;
  for (float& part : s.parts) part *= by;
  return s;
}
__device__ __noinline__ double part(Sample s, int index) { return s.parts[index]; }

extern "C" __global__ void sum(double* out) {
  Sample s{'a', static_cast<int>(threadIdx.x), 2.0, {0, 1, 2, 3, 4}};
  const Sample t = tripled(s, 3);
  double total = t.count + t.weight + (t.tag == 'a' ? 6 : 0) + 2 * s.count;
  for (int i = 0; i < 5; ++i) total += part(t, i);
  out[threadIdx.x] = total;
}
