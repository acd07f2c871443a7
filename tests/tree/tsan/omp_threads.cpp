// What the ThreadSanitizer job is worth: with "race" it must report one, without it must stay
// silent although the threads share data across OpenMP's barriers, reductions and dynamic loops.
#include <cstdio>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
  const bool race = argc > 1 && std::strcmp(argv[1], "race") == 0;
  std::vector<long> values(1000, 1);
  long sum = 0;
  for (int round = 0; round < 20; ++round) {
#pragma omp parallel num_threads(4)
    {
#pragma omp for schedule(dynamic, 16)
      for (int i = 0; i < 1000; ++i) values[i] += i;
#pragma omp for reduction(+ : sum)
      for (int i = 0; i < 1000; ++i) sum += values[999 - i];
      if (race) values[0] += 1;
    }
  }
  std::printf("sum %ld\n", sum);
}
