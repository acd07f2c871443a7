// Runs the page's function. What it includes and defines is at the level of a file.
EXAMPLE;

int main() {
  uint32_t values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  if (twice(values) != 0) return 1;
  for (uint32_t i = 0; i < 8; ++i) {
    if (values[i] != 2 * i) return 1;
  }
  return 0;
}
