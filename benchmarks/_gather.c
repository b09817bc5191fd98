/* Loads every line of memory of the rows named, once, with prefetches far enough ahead; see sweeps.py. */
#include <stddef.h>
#include <stdint.h>

#define LINE 64
#define AHEAD 64

typedef float line __attribute__((vector_size(LINE)));

float gather(const char *table, const int32_t *ids, ptrdiff_t n, ptrdiff_t lines) {
  line sums[8] = {0};
  for (ptrdiff_t t = 0; t < n; ++t) {
    if (t + AHEAD < n)
      for (ptrdiff_t l = 0; l < lines; ++l) __builtin_prefetch(table + (ids[t + AHEAD] * lines + l) * LINE);
    const char *row = table + ids[t] * lines * LINE;
    ptrdiff_t l = 0;
    for (; l + 4 <= lines; l += 4)
      for (int v = 0; v < 4; ++v) sums[v] += *(const line *)(row + (l + v) * LINE);
    for (; l < lines; ++l) sums[4] += *(const line *)(row + l * LINE);
  }
  const line all = (sums[0] + sums[1]) + (sums[2] + sums[3]) + sums[4];
  return all[0];
}
