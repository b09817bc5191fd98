// The system of one row, (diag(d) + sum_t c_t q_t q_t') x = offset + sum_t l_t q_t, and the ways to solve it
// exactly.
#pragma once

#include "unseen/symmetric.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr Size cells_a_block = 32;  // cells gathered at once for a Gram matrix
inline constexpr Size cells_ahead = 64;    // prefetch distance in the stream of stored cells

// Fetches the factors of cells to come, each once. A row is passed over several times but needs memory only
// in the first pass: its successors are fetched during all of them, at an even pace.
template <class T, class I>
struct Fetcher {
  const I* indices;  // of the whole matrix
  Size next, end;
  const T* table;
  Size width;

  UNSEEN_INLINE void up_to(Size cell) {
    for (const Size stop = smaller(cell, end); next < stop; ++next) {
      prefetch_row(table + Size(indices[next]) * width, width);
    }
  }
};

template <class T, class I>
struct RowSystem {
  const I* indices;
  Size n_cells;
  CellValues<T> curvature, linear;
  const T* table;     // factors of the other side, `width` apart
  const T* diagonal;  // d, of length width
  const T* offset;    // of length width, may be null
  const T* shift;     // known part of the scores of each column, may be null
  Size rank, width;
  Size start;  // of the row, among all cells
  Fetcher<T, I>* fetcher;
  Size readable = 0;  // cells from the start of the row to the end of the matrix

  UNSEEN_INLINE const T* factor(Size t) const { return table + Size(indices[t]) * width; }
  UNSEEN_INLINE T c(Size t) const { return curvature.data[t * curvature.step]; }
  UNSEEN_INLINE T l(Size t) const {
    const T pull = linear.data[t * linear.step];
    return shift ? pull - c(t) * shift[indices[t]] : pull;
  }
};

template <class T>
UNSEEN_INLINE T dot(const T* a, const T* b, Size width) {
  Vec<T> s = zero<T>();
  for (Size at = 0; at < width; at += lanes<T>) s += load(a + at) * load(b + at);
  return sum<T>(s);
}

// 1/2 x'Dx - offset . x + sum over the cells of c/2 s^2 - d s, with s the score and d its linear part: what
// the solution of the row minimises. Its factors are still in cache.
template <class T, class I>
double row_value(const RowSystem<T, I>& row, const T* x) {
  double total = 0;
  for (Size l = 0; l < row.rank; ++l) {
    total += 0.5 * double(row.diagonal[l]) * double(x[l]) * double(x[l]);
    if (row.offset) total -= double(row.offset[l]) * double(x[l]);
  }
  for (Size t = 0; t < row.n_cells; t += 4) {
    const Size last = row.n_cells - 1;
    const T *q0 = row.factor(t), *q1 = row.factor(smaller(t + 1, last));
    const T *q2 = row.factor(smaller(t + 2, last)), *q3 = row.factor(smaller(t + 3, last));
    Vec<T> s0 = zero<T>(), s1 = s0, s2 = s0, s3 = s0;
    for (Size at = 0; at < row.width; at += lanes<T>) {
      const Vec<T> xv = load(x + at);
      s0 += xv * load(q0 + at);
      s1 += xv * load(q1 + at);
      s2 += xv * load(q2 + at);
      s3 += xv * load(q3 + at);
    }
    const Vec4<T> dots = sum_each<T>(s0, s1, s2, s3);
    for (Size r = 0; r < smaller<Size>(4, row.n_cells - t); ++r) {
      const double known = row.shift ? double(row.shift[row.indices[t + r]]) : 0.0;
      const double score = double(dots[r]) + known;
      total +=
          (0.5 * double(row.c(t + r)) * score - double(row.linear.data[(t + r) * row.linear.step])) * score;
    }
  }
  return total;
}

// Short rows: with z = D^(1/2) x and G the factors scaled by sqrt(c) D^(-1/2), the solution is
// z = z0 + G'v where (I + G G') v = rhs has only as many unknowns as the row has cells.
// Needs d > 0 and c >= 0. scratch: (width + n4) * width + 3 * width with n4 the cells rounded up to 4.
template <class T, class I>
bool solve_dual(const RowSystem<T, I>& row, T* x, T* scratch) {
  const Size width = row.width, n = row.n_cells, n4 = round_up(n, 4);
  const Size dual_width = round_up(n4, lanes<T>);
  T *scale = scratch, *rhs = scale + width, *inverse = rhs + width, *g = inverse + width,
    *matrix = g + n4 * width;
  bool has_start = row.offset != nullptr;
  for (Size l = 0; l < width; ++l) {
    scale[l] = T(1) / square_root(row.diagonal[l]);
    x[l] = row.offset ? row.offset[l] : T(0);
  }
  for (Size t = 0; t < n4; ++t) {
    const T c = t < n ? row.c(t) : T(0);
    const T root = square_root(c);
    const T* q = row.factor(smaller(t, n - 1));
    row.fetcher->up_to(row.start + t + cells_ahead);
    for (Size at = 0; at < width; at += lanes<T>) {
      store(g + t * width + at, root * (load(scale + at) * load(q + at)));
    }
    rhs[t] = root > 0 ? row.l(t) / root : T(0);
    if (t < n && c == 0) {  // no curvature: the cell only pulls
      has_start = true;
      for (Size l = 0; l < width; ++l) x[l] += row.l(t) * q[l];
    }
  }
  for (Size l = 0; l < width; ++l) x[l] *= scale[l];  // z0
  if (has_start) {
    for (Size t = 0; t < n; ++t) rhs[t] -= dot(g + t * width, x, width);
  }
  for (Size a = 0; a < n4; a += 4) {
    for (Size b = a; b < n4; b += 4) {
      Vec<T> s[4][4] = {};
      for (Size at = 0; at < width; at += lanes<T>) {
        Vec<T> left[4];
        for (int i = 0; i < 4; ++i) left[i] = load(g + (a + i) * width + at);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          const Vec<T> right = load(g + (b + j) * width + at);
#pragma GCC unroll 4
          for (int i = 0; i < 4; ++i) s[i][j] += left[i] * right;
        }
      }
      for (int i = 0; i < 4; ++i) {
        const Vec4<T> entries = sum_each<T>(s[i][0], s[i][1], s[i][2], s[i][3]);
        __builtin_memcpy(matrix + (a + i) * dual_width + b, &entries, sizeof entries);
      }
    }
    for (Size i = a; i < a + 4; ++i) {
      matrix[i * dual_width + i] += 1;
      for (Size b = a / lanes<T> * lanes<T>; b < a; ++b) matrix[i * dual_width + b] = 0;
      for (Size b = n4; b < dual_width; ++b) matrix[i * dual_width + b] = 0;
    }
  }
  for (Size t = n4; t < dual_width; ++t) rhs[t] = 0;
  if (!cholesky(matrix, n4, dual_width, inverse)) return false;
  T* v = scale;  // reuse: recompute the scale afterwards
  cholesky_solve(matrix, n4, dual_width, inverse, rhs, v);
  for (Size t = 0; t < n; ++t) {
    const Vec<T> weight = broadcast(v[t]);
    for (Size at = 0; at < width; at += lanes<T>) {
      store(x + at, load(x + at) + weight * load(g + t * width + at));
    }
  }
  for (Size l = 0; l < width; ++l) x[l] /= square_root(row.diagonal[l]);
  return true;
}

// matrix += sum_t c_t q_t q_t' in its part j >= i, rhs += sum_t l_t q_t. block: 2 * cells_a_block * width.
template <class T, class I>
void add_normal_equations(const RowSystem<T, I>& row, T* matrix, T* rhs, T* block) {
  const Size width = row.width;
  T* scaled = block + cells_a_block * width;
  for (Size begin = 0; begin < row.n_cells; begin += cells_a_block) {
    const Size n = smaller(cells_a_block, row.n_cells - begin);
    row.fetcher->up_to(row.start + begin + 2 * cells_a_block);
    for (Size at = 0; at < width; at += lanes<T>) {
      Vec<T> pull = zero<T>();
      for (Size t = 0; t < n; ++t) {
        const Vec<T> q = load(row.factor(begin + t) + at);
        store(block + t * width + at, q);
        store(scaled + t * width + at, row.c(begin + t) * q);
        pull += row.l(begin + t) * q;
      }
      store(rhs + at, load(rhs + at) + pull);
    }
    add_gram(scaled, block, width, n, matrix);
  }
}

// Long rows, or systems that are not diagonal plus something positive.
// scratch: (width + 2 * cells_a_block) * width + 2 * width.
template <class T, class I>
bool solve_primal(const RowSystem<T, I>& row, T* x, T* scratch) {
  const Size width = row.width, n4 = round_up(row.rank, 4);
  T *matrix = scratch, *block = matrix + width * width;
  T *rhs = block + 2 * cells_a_block * width, *inverse = rhs + width;
  for (Size e = 0; e < width * width; ++e) matrix[e] = 0;
  for (Size l = 0; l < width; ++l) {
    matrix[l * width + l] = row.diagonal[l];
    rhs[l] = row.offset ? row.offset[l] : T(0);
  }
  add_normal_equations(row, matrix, rhs, block);
  if (!cholesky(matrix, n4, width, inverse)) return false;
  cholesky_solve(matrix, n4, width, inverse, rhs, x);
  return true;
}

// Whatever is left: least squares of least norm from the eigenvectors, in double. False without memory.
template <class T, class I>
bool solve_least_squares(const RowSystem<T, I>& row, T* x) {
  const Size rank = row.rank;
  Buffer<double> matrix(rank * rank), values(rank), rhs(rank), solution(rank), work(rank * rank + rank);
  if (!matrix || !values || !rhs || !solution || !work) return false;
  matrix.fill(0);
  solution.fill(0);
  for (Size l = 0; l < rank; ++l) {
    matrix[l * rank + l] = row.diagonal[l];
    rhs[l] = row.offset ? row.offset[l] : T(0);
  }
  for (Size t = 0; t < row.n_cells; ++t) {
    const T* q = row.factor(t);
    for (Size i = 0; i < rank; ++i) {
      rhs[i] += double(row.l(t)) * q[i];
      const double scaled = double(row.c(t)) * q[i];
      for (Size j = 0; j < rank; ++j) matrix[i * rank + j] += scaled * q[j];
    }
  }
  double all = 0;
  for (Size e = 0; e < rank * rank; ++e) all += 0 * matrix[e];
  for (Size l = 0; l < rank; ++l) all += 0 * rhs[l];
  if (all != all) {  // something is infinite or NaN: say so instead of inventing a number
    for (Size i = 0; i < row.width; ++i) x[i] = i < rank ? T(all) : T(0);
    return true;
  }
  symmetric_eigen(matrix.data(), rank, values.data(), work.data());
  double largest = 0;
  for (Size l = 0; l < rank; ++l) largest = larger(largest, magnitude(values[l]));
  for (Size l = 0; l < rank; ++l) {
    if (!(magnitude(values[l]) > double(rank) * epsilon<T>() * largest)) continue;
    double along = 0;
    for (Size i = 0; i < rank; ++i) along += matrix[l * rank + i] * rhs[i];
    for (Size i = 0; i < rank; ++i) solution[i] += along / values[l] * matrix[l * rank + i];
  }
  for (Size i = 0; i < row.width; ++i) x[i] = i < rank ? T(solution[i]) : T(0);
  return true;
}

}  // namespace unseen::UNSEEN_ISA
