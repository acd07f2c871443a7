// From a number of rows at run time to kernels compiled for each, for every instruction set; see
// panel-inl.hpp for why it is included inside their namespaces.

// f.operator()<rows>(); kMost where there are more.
template <int kMost, class F>
inline void with_rows(int rows, const F& f) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return with_rows<kMost - 1>(rows, f);
  }
  f.template operator()<kMost>();
}

// f.operator()<count>(first) for runs of at most kMost rows, which differ by one row at most: nine
// rows as five and four take less than as eight and one, whose sums would wait for each other.
template <int kMost, class F>
inline void in_even_runs(int rows, const F& f) {
  for (int first = 0, runs = (rows + kMost - 1) / kMost; runs > 0; --runs) {
    const int count = (rows - first + runs - 1) / runs;
    with_rows<kMost>(count, [&]<int kRows>() { f.template operator()<kRows>(first); });
    first += count;
  }
}
