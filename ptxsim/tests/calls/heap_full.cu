//! {"comment": "8 MiB in all: eight times one, then a failure, then again one when one was freed",
//!  "buffers": [{"name": "out", "type": "s32", "count": 3, "expect": [8, 0, 1]}], "params": [{"buffer": "out"}]}
extern "C" __global__ void fill(int* out) {
  void* last = nullptr;
  int count = 0;
  while (void* more = malloc(1 << 20)) {
    last = more;
    ++count;
  }
  out[0] = count;
  out[1] = malloc(16) != nullptr;
  free(last);
  out[2] = malloc(1 << 20) != nullptr;
}
