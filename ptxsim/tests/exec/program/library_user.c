/* A program whose kernels are all in a library. */
#include <stdio.h>

int forty_one(void);

int main(void) {
  printf("%d\n", forty_one());
  return 0;
}
