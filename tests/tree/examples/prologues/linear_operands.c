/* What the example of linear.h takes for granted: the operands of a small projection, as NVFP4. */
#include <stdio.h>
#include <string.h>

#include "dualgemm/linear.h"

static int report(const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}

int main(void) {
  enum { m = 3, n = 40, k = 64 };
  uint8_t a[m * k / 2], a_scales[m * k / 16], w[n * k / 2], w_scales[n * k / 16];
  uint16_t d[m * n];
  const float alpha = 0.5f;
  int i;
  memset(a, 0x22, sizeof a); /* ones */
  memset(w, 0x22, sizeof w);
  memset(a_scales, 0x38, sizeof a_scales);
  memset(w_scales, 0x38, sizeof w_scales);
  EXAMPLE;
  for (i = 0; i < m * n; ++i) {
    if (d[i] != 0x5000) return report("d is wrong"); /* 32, in fp16 */
  }
  return 0;
}
