//! {"expect_error": "was never written",
//!  "buffers": [{"name": "out", "type": "s32", "count": 1}], "params": [{"buffer": "out"}]}
extern "C" __global__ void unwritten(int* out) {
  const volatile int* numbers = static_cast<int*>(malloc(16));
  *out = numbers[1];
}
