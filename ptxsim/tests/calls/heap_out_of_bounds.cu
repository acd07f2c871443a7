//! {"expect_error": "is not inside a registered buffer; it is at offset 12 of the 12 bytes that"}
extern "C" __global__ void overrun() {
  int* numbers = static_cast<int*>(malloc(12));
  for (volatile int i = 0; i <= 3; ++i) numbers[i] = i;
}
