//! {"expect_error": "it is at offset 4 of the 8 bytes that",
//!  "buffers": [{"name": "out", "type": "s32", "count": 1}], "params": [{"buffer": "out"}]}
extern "C" __global__ void late(int* out) {
  volatile int* numbers = static_cast<int*>(malloc(8));
  numbers[1] = 5;
  free(const_cast<int*>(numbers));
  *out = numbers[1];
}
