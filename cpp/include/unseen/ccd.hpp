// Cyclic coordinate descent by components (CCD++).
//
// Both sides keep the scores of the stored cells in their own order, so every pass streams through memory.
// A pass does not write the change that it causes: the next pass over the same side brings the scores up to
// date while it reads them, as two rank-one terms.
#pragma once

#include "unseen/dense.hpp"
#include "unseen/sparse.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr Size entities_a_chunk = 512;

struct CcdOptions {
  double background, target, reg, l1, lower, upper;
};

// What a cell reads of the other side: two factors of the pending change, and the component being solved.
template <class T>
struct Pack {
  T p, q, x, unused;
};

template <class T, class I>
struct CcdSide {
  Pattern<I> cells;
  CellValues<T> curvature, linear;  // these and the scores in the order of cells
  T* scores;
  T* factors;  // transposed: component t starts at t * cells.n_rows
  T* before;   // the component last solved, as it was before that
  Pack<T>* packs;
  const RowChunks& chunks;

  T* component(Size t) const { return factors + t * cells.n_rows; }
};

// What the background needs to know of the other side: its component times all its components, and its sum.
struct Background {
  double* products;
  double sum;
};

template <class T>
UNSEEN_INLINE T minimise_scalar(T x, double pull, double bend, const CcdOptions& options) {
  double best = x;
  if (bend > 0) {
    const double size = magnitude(pull) - options.l1;
    best = size > 0 ? (pull < 0 ? -size : size) / bend : 0;
  }
  return T(smaller(larger(best, options.lower), options.upper));
}

// Bring the scores of one row up to date and return the two sums of its scalar problem.
template <bool one_curvature, bool one_linear, class T, class I>
UNSEEN_INLINE void row_sums(const CcdSide<T, I>& side, Size i, T own_p, T own_q, const Pack<T>* packs,
                            double& pull, double& bend) {
  const T *curvature = side.curvature.data, *linear = side.linear.data;
  const I* indices = side.cells.indices;
  T* scores = side.scores;
  pull = bend = 0;
  for (Size begin = side.cells.indptr[i]; begin < Size(side.cells.indptr[i + 1]); begin += cells_a_partial_sum) {
    const Size end = smaller<Size>(begin + cells_a_partial_sum, side.cells.indptr[i + 1]);
    T part_pull = 0, part_bend = 0;
#pragma omp simd reduction(+ : part_pull, part_bend)
    for (Size t = begin; t < end; ++t) {
      const Pack<T>& there = packs[indices[t]];
      const T c = one_curvature ? curvature[0] : curvature[t], l = one_linear ? linear[0] : linear[t];
      const T score = scores[t] + own_p * there.p + own_q * there.q;
      scores[t] = score;
      part_pull += (l - c * score) * there.x;
      part_bend += c * there.x * there.x;
    }
    pull += part_pull;
    bend += part_bend;
  }
}

template <class T, class I>
UNSEEN_INLINE void row_sums(const CcdSide<T, I>& side, Size i, T own_p, T own_q, const Pack<T>* packs,
                            double& pull, double& bend) {
  if (side.curvature.step == 0) {
    if (side.linear.step == 0) return row_sums<true, true>(side, i, own_p, own_q, packs, pull, bend);
    return row_sums<true, false>(side, i, own_p, own_q, packs, pull, bend);
  }
  if (side.linear.step == 0) return row_sums<false, true>(side, i, own_p, own_q, packs, pull, bend);
  return row_sums<false, false>(side, i, own_p, own_q, packs, pull, bend);
}

// Solve component t of one side, all else fixed. `last` is the component that changed last, as it is now;
// own_terms(last, before, current) are the two factors of the pending change that belong to the row.
// On exit `result` describes the solved component. partial: (rank + 1) for every chunk.
template <class T, class I, class OwnTerms>
void solve_component(const CcdSide<T, I>& side, const Pack<T>* packs, Size t, Size rank, const T* last,
                     const CcdOptions& options, const Background& other, Background& result, double* partial,
                     int n_threads, const OwnTerms& own_terms) {
  const bool background = options.background != 0;
  T* x = side.component(t);
  parallel_for(side.chunks.count(), n_threads, [&](Size chunk, int) {
    const Size first = side.chunks.begin(chunk), stop = side.chunks.end(chunk);
    double cross[entities_a_chunk];  // the background's pull through the other components
    if (background) {
      for (Size i = first; i < stop; ++i) cross[i - first] = 0;
      for (Size l = 0; l < rank; ++l) {
        if (l == t) continue;
        const double weight = other.products[l];
        const T* column = side.component(l);
        for (Size i = first; i < stop; ++i) cross[i - first] += weight * column[i];
      }
    }
    for (Size i = first; i < stop; ++i) {
      double pull, bend;
      T own_p, own_q;
      own_terms(last[i], side.before[i], x[i], own_p, own_q);
      row_sums(side, i, own_p, own_q, packs, pull, bend);
      pull += bend * x[i];
      bend += options.reg;
      if (background) {
        pull += options.background * (options.target * other.sum - cross[i - first]);
        bend += options.background * other.products[t];
      }
      side.before[i] = x[i];
      x[i] = minimise_scalar(x[i], pull, bend, options);
    }
    if (background) {
      double* sums = partial + chunk * (rank + 1);
      for (Size l = 0; l < rank; ++l) {
        const T* column = side.component(l);
        double s = 0;
#pragma omp simd reduction(+ : s)
        for (Size i = first; i < stop; ++i) s += double(x[i]) * double(column[i]);
        sums[l] = s;
      }
      sums[rank] = 0;
      for (Size i = first; i < stop; ++i) sums[rank] += x[i];
    }
  });
  if (!background) return;
  for (Size l = 0; l < rank; ++l) result.products[l] = 0;
  result.sum = 0;
  for (Size chunk = 0; chunk < side.chunks.count(); ++chunk) {
    const double* sums = partial + chunk * (rank + 1);
    for (Size l = 0; l < rank; ++l) result.products[l] += sums[l];
    result.sum += sums[rank];
  }
}

// Call body(i) for every i < n, some thousands at a time.
template <class Body>
void for_each_index(Size n, int n_threads, const Body& body) {
  constexpr Size step = 8192;
  parallel_for((n + step - 1) / step, n_threads, [&](Size chunk, int) {
    const Size stop = smaller((chunk + 1) * step, n);
    for (Size i = chunk * step; i < stop; ++i) body(i);
  });
}

template <class T>
void transpose(const T* from, Size n_rows, Size n_cols, T* to, int n_threads) {
  constexpr Size tile = 64;
  parallel_for((n_rows + tile - 1) / tile, n_threads, [&](Size block, int) {
    const Size first = block * tile, stop = smaller(first + tile, n_rows);
    for (Size j = 0; j < n_cols; ++j) {
      for (Size i = first; i < stop; ++i) to[j * n_rows + i] = from[i * n_cols + j];
    }
  });
}

template <class T, class I>
bool ccd_sweep(const CcdProblem<T, I>& problem, int n_threads) {
  const Size rank = problem.rank, n = problem.by_row.n_rows, m = problem.by_col.n_rows;
  const Size nnz = problem.by_row.indptr[n], width = padded_width<T>(rank);
  const CcdOptions options{problem.background, problem.target, problem.reg,
                           problem.l1,         problem.lower,  problem.upper};
  const RowChunks row_chunks(problem.by_row.indptr, n, cells_a_chunk, entities_a_chunk);
  const RowChunks col_chunks(problem.by_col.indptr, m, cells_a_chunk, entities_a_chunk);
  if (!row_chunks || !col_chunks) return false;
  const CellValues<T>&curvature = problem.curvature, &linear = problem.linear;
  Buffer<T> left(n * rank), right(m * rank), left_before(n), right_before(m);
  Buffer<T> scores(nnz), col_curvature(curvature.step * nnz), col_linear(linear.step * nnz);
  Buffer<Pack<T>> left_packs(n), right_packs(m);
  Buffer<double> partial(larger(row_chunks.count(), col_chunks.count()) * (rank + 1)), left_products(rank);
  Buffer<double> right_gram(width * width), right_sums(rank);
  if (!left || !right || !left_before || !right_before || !scores || !col_curvature || !col_linear ||
      !left_packs || !right_packs || !partial || !left_products || !right_gram || !right_sums) {
    return false;
  }
  if (!gram_sums(problem.right, m, rank, right_gram.data(), n_threads)) return false;
  for (Size i = 0; i < rank; ++i) {
    for (Size j = 0; j < i; ++j) right_gram[i * width + j] = right_gram[j * width + i];
  }
  right_sums.fill(0);
  for (Size j = 0; j < m; ++j) {
    for (Size l = 0; l < rank; ++l) right_sums[l] += problem.right[j * rank + l];
  }
  transpose(problem.left, n, rank, left.data(), n_threads);
  transpose(problem.right, m, rank, right.data(), n_threads);
  for_each_index(nnz, n_threads, [&](Size t) {
    const Size place = problem.csc_order[t];
    scores[t] = problem.scores[place];
    if (curvature.step) col_curvature[t] = curvature.data[place];
    if (linear.step) col_linear[t] = linear.data[place];
  });
  const CcdSide<T, I> rows{problem.by_row,     curvature,         linear,    problem.scores, left.data(),
                           left_before.data(), left_packs.data(), row_chunks};
  const CcdSide<T, I> cols{problem.by_col,
                           {curvature.step ? col_curvature.data() : curvature.data, curvature.step},
                           {linear.step ? col_linear.data() : linear.data, linear.step},
                           scores.data(),
                           right.data(),
                           right_before.data(),
                           right_packs.data(),
                           col_chunks};

  left_before.fill(0);
  right_before.fill(0);
  bool started = false;
  for (Size t = 0; t < rank; ++t) {
    for (Size pass = 0; pass < problem.inner; ++pass) {
      // The component that changed last: the one before, or this one in a further pass over it.
      const Size u = pass == 0 && t > 0 ? t - 1 : t;
      const T *w = rows.component(t), *h = cols.component(t), *w_last = rows.component(u), *h_last = cols.component(u);

      // Since the last pass over the rows: w h' of component u, instead of what it was before.
      for_each_index(m, n_threads, [&](Size j) {
        cols.packs[j] = started ? Pack<T>{h_last[j], -cols.before[j], h[j], 0} : Pack<T>{0, 0, h[j], 0};
      });
      if (pass > 0) w_last = w;
      // The columns' last pass saw this w of component u.
      for_each_index(n, n_threads, [&](Size i) { rows.packs[i].p = started ? w_last[i] : T(0); });
      Background of_right{right_gram.data() + t * width, right_sums[t]}, of_left{left_products.data(), 0};
      solve_component(rows, cols.packs, t, rank, w_last, options, of_right, of_left, partial.data(), n_threads,
                      [](T last, T before, T, T& p, T& q) { p = last, q = before; });

      // Since the last pass over the columns: h of component u, then w of component t.
      for_each_index(n, n_threads, [&](Size i) {
        rows.packs[i].q = w[i] - rows.before[i];
        rows.packs[i].x = w[i];
      });
      solve_component(cols, rows.packs, t, rank, h_last, options, of_left, of_right, partial.data(), n_threads,
                      [](T last, T before, T now, T& p, T& q) { p = last - before, q = now; });
      if (options.background != 0) {
        right_sums[t] = of_right.sum;
        for (Size l = 0; l < rank; ++l) right_gram[l * width + t] = right_gram[t * width + l];
      }
      started = true;
    }
  }
  transpose(left.data(), rank, n, problem.left, n_threads);
  transpose(right.data(), rank, m, problem.right, n_threads);
  return sddmm<T, I>(problem.by_row, problem.left, problem.right, rank, problem.scores, n_threads);
}

}  // namespace unseen::UNSEEN_ISA
