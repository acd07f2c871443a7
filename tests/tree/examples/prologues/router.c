/* What the example of experts.h takes for granted: a router's ids, and room for what becomes of
   them. */
#include <stdio.h>

#include "dualgemm/experts.h"

static int report(const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}

int main(void) {
  enum { tokens = 3, top_k = 2, experts = 4 };
  const int32_t topk_ids[tokens * top_k] = {3, 0, 0, 2, -1, 0};
  int32_t offsets[experts + 1], row_tokens[tokens * top_k], places[tokens * top_k];
  EXAMPLE;
  if (offsets[1] != 3 || offsets[2] != 3 || offsets[experts] != 5)
    return report("an offset is wrong");
  if (row_tokens[0] != 0 || row_tokens[4] != 0) return report("a row is wrong");
  return places[4] == -1 && places[5] == 2 ? 0 : report("a place is wrong");
}
