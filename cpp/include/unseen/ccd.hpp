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
inline constexpr Size packs_ahead = 32;  // prefetch distance in the stream of stored cells

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
  T* factors;          // row-major
  T *current, *spare;  // the component being solved, and room for the next
  T *last, *before;    // the component that was solved last, as it is now and as it was before that
  Pack<T>* packs;
  const RowChunks& chunks;
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

template <class T>
UNSEEN_INLINE Vec4<T> load4(const T* from) {
  Vec4<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

// Bring the scores of one row up to date and return the two sums of its scalar problem.
template <bool one_curvature, bool one_linear, class T, class I>
UNSEEN_INLINE void row_sums(const CcdSide<T, I>& side, Size i, T own_p, T own_q, const Pack<T>* packs,
                            double& pull, double& bend) {
  const T *curvature = side.curvature.data, *linear = side.linear.data;
  const I* indices = side.cells.indices;
  const Size stop = side.cells.indptr[i + 1], stream = side.cells.indptr[side.cells.n_rows];
  pull = bend = 0;
  for (Size begin = side.cells.indptr[i]; begin < stop; begin += cells_a_partial_sum) {
    const Size end = smaller<Size>(begin + cells_a_partial_sum, stop);
    Vec4<T> pulls = {}, bends = {};
    T last_pull = 0, last_bend = 0;
    Size t = begin;
    for (; t + 4 <= end; t += 4) {
      if (t + packs_ahead + 4 <= stream) {
        for (int r = 0; r < 4; ++r) __builtin_prefetch(packs + indices[t + packs_ahead + r]);
      }
      // One load a cell, then four cells side by side: compilers turn the plain loop into three gathers.
      const Vec4<T> a = load4(&packs[indices[t]].p), b = load4(&packs[indices[t + 1]].p);
      const Vec4<T> c = load4(&packs[indices[t + 2]].p), d = load4(&packs[indices[t + 3]].p);
      const Vec4<T> ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                    cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Vec4<T> p = __builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                    q = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
      const Vec4<T> x = __builtin_shufflevector(__builtin_shufflevector(a, b, 2, 6, 2, 6),
                                                __builtin_shufflevector(c, d, 2, 6, 2, 6), 0, 1, 4, 5);
      const Vec4<T> score = load4(side.scores + t) + own_p * p + own_q * q;
      __builtin_memcpy(side.scores + t, &score, sizeof score);
      const Vec4<T> curve = one_curvature ? curvature[0] - Vec4<T>{} : load4(curvature + t);
      const Vec4<T> level = one_linear ? linear[0] - Vec4<T>{} : load4(linear + t);
      pulls += (level - curve * score) * x;
      bends += curve * x * x;
    }
    for (; t < end; ++t) {
      const Pack<T>& there = packs[indices[t]];
      const T score = side.scores[t] + own_p * there.p + own_q * there.q;
      side.scores[t] = score;
      const T curve = curvature[one_curvature ? 0 : t];
      last_pull += (linear[one_linear ? 0 : t] - curve * score) * there.x;
      last_bend += curve * there.x * there.x;
    }
    pull += (double(pulls[0]) + double(pulls[1])) + (double(pulls[2]) + double(pulls[3])) + double(last_pull);
    bend += (double(bends[0]) + double(bends[1])) + (double(bends[2]) + double(bends[3])) + double(last_bend);
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

// Solve component t of one side, all else fixed; own_terms(last, before, current) are the two factors of the
// pending change that belong to the row. On exit `result` describes the solved component.
// partial: (rank + 1) for every chunk; scratch: one padded row, and one more for every thread.
template <class T, class I, class OwnTerms>
void solve_component(const CcdSide<T, I>& side, const Pack<T>* packs, Size t, Size rank,
                     const CcdOptions& options, const Background& other, Background& result, double* partial,
                     T* scratch, int n_threads, const OwnTerms& own_terms) {
  const bool background = options.background != 0;
  const Size width = round_up(rank, lanes<T>);
  T* products = scratch;  // with the component itself left out
  for (Size l = 0; l < rank; ++l) scratch[width + l] = l == t ? T(0) : T(other.products[l]);
  spread_row(scratch + width, rank, products);
  parallel_for(side.chunks.count(), n_threads, [&](Size chunk, int thread) {
    T* sums = scratch + width * (1 + thread);
    double total = 0;
    for (Size l = 0; l < width; ++l) sums[l] = 0;
    for (Size i = side.chunks.begin(chunk); i < side.chunks.end(chunk); ++i) {
      T* row = side.factors + i * rank;
      const T x = side.current[i];
      double pull, bend;
      T own_p, own_q;
      own_terms(side.last[i], side.before[i], x, own_p, own_q);
      row_sums(side, i, own_p, own_q, packs, pull, bend);
      pull += bend * x;
      bend += options.reg;
      if (background) {
        pull += options.background * (options.target * other.sum - double(spread_dot(products, row, rank)));
        bend += options.background * other.products[t];
      }
      const T best = minimise_scalar(x, pull, bend, options);
      side.before[i] = x;
      side.current[i] = row[t] = best;
      if (background) {
        spread_add(best, row, rank, sums);
        total += best;
      }
    }
    double* part = partial + chunk * (rank + 1);
    for (Size l = 0; l < rank; ++l) part[l] = sums[spread_place<T>(l, rank)];
    part[rank] = total;
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

template <class T, class I>
void start_component(CcdSide<T, I>& side, Size t, Size rank, int n_threads) {
  T* next = side.spare;
  side.last = side.spare = side.current;
  side.current = next;
  for_each_index(side.cells.n_rows, n_threads, [&](Size i) { next[i] = side.factors[i * rank + t]; });
}

template <class T, class I>
bool ccd_sweep(const CcdProblem<T, I>& problem, int n_threads) {
  const Size rank = problem.rank, n = problem.by_row.n_rows, m = problem.by_col.n_rows;
  const Size nnz = problem.by_row.indptr[n], width = padded_width<T>(rank);
  const CcdOptions options{problem.background, problem.target, problem.reg,
                           problem.l1,         problem.lower,  problem.upper};
  const CellValues<T>&curvature = problem.curvature, &linear = problem.linear;
  const RowChunks row_chunks(problem.by_row.indptr, n, cells_a_chunk, entities_a_chunk);
  const RowChunks col_chunks(problem.by_col.indptr, m, cells_a_chunk, entities_a_chunk);
  if (!row_chunks || !col_chunks) return false;
  Buffer<T> left(3 * n), right(3 * m), scores(nnz);
  Buffer<T> col_curvature(curvature.step * nnz), col_linear(linear.step * nnz);
  Buffer<Pack<T>> left_packs(n), right_packs(m);
  Buffer<double> partial(larger(row_chunks.count(), col_chunks.count()) * (rank + 1)), left_products(rank);
  Buffer<double> right_gram(width * width), right_sums(rank);
  Buffer<T> scratch(width * (1 + n_threads));
  if (!left || !right || !scores || !col_curvature || !col_linear || !left_packs || !right_packs ||
      !partial || !left_products || !right_gram || !right_sums || !scratch) {
    return false;
  }
  right_gram.fill(0);
  right_sums.fill(0);
  if (options.background != 0) {
    if (!gram_sums(problem.right, m, rank, right_gram.data(), n_threads)) return false;
    for (Size i = 0; i < rank; ++i) {
      for (Size j = 0; j < i; ++j) right_gram[i * width + j] = right_gram[j * width + i];
    }
    for (Size j = 0; j < m; ++j) {
      for (Size l = 0; l < rank; ++l) right_sums[l] += problem.right[j * rank + l];
    }
  }
  for_each_index(nnz, n_threads, [&](Size t) {
    const Size place = problem.csc_order[t];
    scores[t] = problem.scores[place];
    if (curvature.step) col_curvature[t] = curvature.data[place];
    if (linear.step) col_linear[t] = linear.data[place];
  });
  left.fill(0);
  right.fill(0);
  T *left_rooms = left.data(), *right_rooms = right.data();
  CcdSide<T, I> rows{problem.by_row,     curvature,         linear,         problem.scores,
                     problem.left,       left_rooms,        left_rooms + n, left_rooms,
                     left_rooms + 2 * n, left_packs.data(), row_chunks};
  CcdSide<T, I> cols{problem.by_col,
                     {curvature.step ? col_curvature.data() : curvature.data, curvature.step},
                     {linear.step ? col_linear.data() : linear.data, linear.step},
                     scores.data(),
                     problem.right,
                     right_rooms,
                     right_rooms + m,
                     right_rooms,
                     right_rooms + 2 * m,
                     right_packs.data(),
                     col_chunks};

  for (Size t = 0; t < rank; ++t) {
    for (Size pass = 0; pass < problem.inner; ++pass) {
      if (pass == 0) {
        start_component(rows, t, rank, n_threads);
        start_component(cols, t, rank, n_threads);
      }
      // Since the last pass over the rows: w h' of the last component, instead of what it was before.
      for_each_index(m, n_threads,
                     [&](Size j) { cols.packs[j] = {cols.last[j], -cols.before[j], cols.current[j], 0}; });
      // The w that the columns saw in their last pass.
      for_each_index(n, n_threads, [&](Size i) { rows.packs[i].p = rows.last[i]; });
      Background of_right{right_gram.data() + t * width, right_sums[t]}, of_left{left_products.data(), 0};
      solve_component(rows, cols.packs, t, rank, options, of_right, of_left, partial.data(), scratch.data(),
                      n_threads, [](T last, T before, T, T& p, T& q) { p = last, q = before; });

      // Since the last pass over the columns: h of the last component, then w of this one.
      for_each_index(n, n_threads, [&](Size i) {
        rows.packs[i].q = rows.current[i] - rows.before[i];
        rows.packs[i].x = rows.current[i];
      });
      solve_component(cols, rows.packs, t, rank, options, of_left, of_right, partial.data(), scratch.data(),
                      n_threads, [](T last, T before, T now, T& p, T& q) { p = last - before, q = now; });
      right_sums[t] = of_right.sum;
      for (Size l = 0; l < rank; ++l) right_gram[l * width + t] = right_gram[t * width + l];
      rows.last = rows.current;  // for a further pass over this component
      cols.last = cols.current;
    }
  }
  return sddmm<T, I>(problem.by_row, problem.left, problem.right, rank, problem.scores, n_threads);
}

}  // namespace unseen::UNSEEN_ISA
