/* What the example of mlp.h takes for granted: activations in bf16, the weights of a small MLP. */
#include <stdio.h>
#include <string.h>

#include "dualgemm/mlp.h"

static int report(const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}

int main(void) {
  enum { m = 3, hidden = 64, intermediate = 48 };
  uint16_t x[m * hidden], y[m * hidden];
  uint8_t gate[intermediate * hidden / 2], gate_scales[intermediate * hidden / 16];
  const uint8_t *up = gate, *down = gate, *up_scales = gate_scales, *down_scales = gate_scales;
  const float alpha_gate = 1.0f, alpha_up = 1.0f / 64, alpha_down = 1.0f / 64;
  int i;
  memset(gate, 0x22, sizeof gate); /* ones */
  memset(gate_scales, 0x38, sizeof gate_scales);
  for (i = 0; i < m * hidden; ++i) x[i] = 0x3F80; /* 1 */
  EXAMPLE;
  for (i = 0; i < m * hidden; ++i) {
    if (y[i] != 0x4240) return report("y is wrong"); /* 48, in bf16 */
  }
  return 0;
}
