/* What the example takes for granted: activations in bf16, and room for them as NVFP4. */
#include <stdio.h>
#include <string.h>

#include "dualgemm/quantize.h"

static int report(const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}

int main(void) {
  enum { m = 3, k = 64 };
  uint16_t x[m * k];
  uint8_t codes[m * k / 2], scales[m * k / 16];
  float row_scale[m];
  int i;
  for (i = 0; i < m * k; ++i) x[i] = 0x40C0; /* 6 */
  EXAMPLE;
  for (i = 0; i < m * k / 2; ++i) {
    if (codes[i] != 0x77) return report("a code is wrong");
  }
  return row_scale[m - 1] == 6.0f / 2688.0f ? 0 : report("a scale is wrong");
}
