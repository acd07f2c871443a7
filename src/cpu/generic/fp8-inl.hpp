// The multiply loop of strategy `fp8` in compiler vectors. The product of two E4M3 values has at
// most eight significant bits and is exact in FP32, so that a multiply and an add round as one
// fused operation would: every instruction set gives the same bits.
//
// Included by each src/cpu/isa/*_fp8.cpp inside its own namespace; see activation-inl.hpp.

// Accumulators of a row tile fill half of the vector registers.
#if defined(__AVX512F__)
constexpr int kLanes = 16, kTileRows = 8;
#elif defined(__AVX2__)
constexpr int kLanes = 8, kTileRows = 4;
#elif defined(__aarch64__)
constexpr int kLanes = 4, kTileRows = 4;
#else
constexpr int kLanes = 4, kTileRows = 2;
#endif
constexpr int kVectors = kPanelN / kLanes;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

// Vector by vector: the compiler keeps accumulators in registers only where no array is copied
// whole.
inline Lanes load(const float* from) {
  Lanes lanes;
  __builtin_memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

template <int kRows>
inline void multiply_rows(const float* a, int64_t a_stride, const float* w, int k_count,
                          bool accumulate, float* c) {
  Lanes acc[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      acc[r][v] = accumulate ? load(c + r * kPanelN + v * kLanes) : Lanes{};
  }
  for (int k = 0; k < k_count; ++k, w += kPanelN) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Lanes columns = load(w + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) acc[r][v] += columns * a[r * a_stride + k];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      __builtin_memcpy(c + r * kPanelN + v * kLanes, &acc[r][v], sizeof(Lanes));
  }
}

void multiply(const float* a, int64_t a_stride, const float* w, int k_count, int rows,
              bool accumulate, float* c) {
  int row = 0;
  for (; row + kTileRows <= rows; row += kTileRows)
    multiply_rows<kTileRows>(a + row * a_stride, a_stride, w, k_count, accumulate,
                             c + row * kPanelN);
  for (; row < rows; ++row)
    multiply_rows<1>(a + row * a_stride, a_stride, w, k_count, accumulate, c + row * kPanelN);
}
