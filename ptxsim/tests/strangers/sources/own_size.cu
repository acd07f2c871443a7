// A stranger's benchmark with a size that an interpreter can do, in place of those of its main().
#define main main_with_sizes_of_a_gpu
#include STRANGER
#undef main

#ifdef CUBE
int main() { return run_benchmark(CUBE, CUBE, CUBE); }
#else
int main() { return run_benchmark(SQUARE); }
#endif
