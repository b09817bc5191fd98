// Products that touch only stored cells.
#pragma once

#include "unseen/parallel.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr Size prefetch_distance = 16;  // cells ahead in the stream of stored cells
inline constexpr Size rows_a_chunk = 1024;
inline constexpr Size cells_a_partial_sum = 512;  // longer sums are added up in pieces, to keep them accurate

// Rows of any width >= the vector are read as whole vectors, the last of which overlaps its neighbour.
template <class T>
UNSEEN_INLINE Size vector_start(Size v, Size width) {
  return smaller<Size>(v * lanes<T>, width - lanes<T>);
}

// Scores of one row: out[t] = x . right[indices[t]].
template <class T, class I>
void row_scores(const T* x, T* padded, const I* indices, Size n_cells, Size n_ahead, const T* right, Size rank,
                T* out) {
  if (rank < lanes<T>) {
    for (Size t = 0; t < n_cells; ++t) {
      const T* q = right + Size(indices[t]) * rank;
      T dot = 0;
      for (Size l = 0; l < rank; ++l) dot += x[l] * q[l];
      out[t] = dot;
    }
    return;
  }
  const Size n_vectors = (rank + lanes<T> - 1) / lanes<T>;
  const Size last = rank - lanes<T>;
  for (Size l = 0; l < (n_vectors - 1) * lanes<T>; ++l) padded[l] = x[l];
  // The overlap has been counted by the vector before.
  for (Size l = 0; l < lanes<T>; ++l) {
    padded[(n_vectors - 1) * lanes<T> + l] = last + l < (n_vectors - 1) * lanes<T> ? T(0) : x[last + l];
  }
  const auto ahead = [&](Size t) {
    if (t + prefetch_distance < n_ahead) prefetch_row(right + Size(indices[t + prefetch_distance]) * rank, rank);
  };
  Size t = 0;
  for (; t + 4 <= n_cells; t += 4) {
    const T *q0 = right + Size(indices[t]) * rank, *q1 = right + Size(indices[t + 1]) * rank;
    const T *q2 = right + Size(indices[t + 2]) * rank, *q3 = right + Size(indices[t + 3]) * rank;
    for (Size r = 0; r < 4; ++r) ahead(t + r);
    Vec<T> s0 = zero<T>(), s1 = s0, s2 = s0, s3 = s0;
    for (Size v = 0; v < n_vectors; ++v) {
      const Vec<T> xv = load(padded + v * lanes<T>);
      const Size at = vector_start<T>(v, rank);
      s0 += xv * load(q0 + at);
      s1 += xv * load(q1 + at);
      s2 += xv * load(q2 + at);
      s3 += xv * load(q3 + at);
    }
    const Vec4<T> dots = sum_each<T>(s0, s1, s2, s3);
    for (int r = 0; r < 4; ++r) out[t + r] = dots[r];
  }
  for (; t < n_cells; ++t) {
    const T* q = right + Size(indices[t]) * rank;
    ahead(t);
    Vec<T> s = zero<T>();
    for (Size v = 0; v < n_vectors; ++v) s += load(padded + v * lanes<T>) * load(q + vector_start<T>(v, rank));
    out[t] = sum<T>(s);
  }
}

template <class T, class I>
bool sddmm(const Pattern<I>& cells, const T* left, const T* right, Size rank, T* out, int n_threads) {
  const RowChunks chunks(cells.indptr, cells.n_rows, cells_a_chunk, rows_a_chunk);
  const Size width = round_up(rank, lanes<T>);
  Buffer<T> padded(width * n_threads);
  if (!chunks || !padded) return false;
  const Size nnz = cells.indptr[cells.n_rows];
  parallel_for(chunks.count(), n_threads, [&](Size chunk, int thread) {
    for (Size i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      const Size start = cells.indptr[i], stop = cells.indptr[i + 1];
      row_scores(left + i * rank, padded.data() + width * thread, cells.indices + start, stop - start,
                 nnz - start, right, rank, out + start);
    }
  });
  return true;
}

// Columns [at, at + P vectors) of one row of the product.
template <int P, class T, class I>
void row_product_panel(const I* indices, const T* values, Size step, Size n_cells, Size n_ahead, const T* dense,
                       Size rank, const Size (&at)[P], T* out) {
  Vec<T> total[P];
  for (int v = 0; v < P; ++v) total[v] = zero<T>();
  for (Size begin = 0; begin < n_cells; begin += cells_a_partial_sum) {
    const Size end = smaller(begin + cells_a_partial_sum, n_cells);
    Vec<T> part[P];
    for (int v = 0; v < P; ++v) part[v] = zero<T>();
    for (Size t = begin; t < end; ++t) {
      const T* q = dense + Size(indices[t]) * rank;
      if (t + prefetch_distance < n_ahead) {
        prefetch_row(dense + Size(indices[t + prefetch_distance]) * rank + at[0], P * lanes<T>);
      }
      const T value = values[t * step];
      for (int v = 0; v < P; ++v) part[v] += value * load(q + at[v]);
    }
    for (int v = 0; v < P; ++v) total[v] += part[v];
  }
  for (int v = 0; v < P; ++v) store(out + at[v], total[v]);
}

template <class T, class I>
void row_product(const I* indices, const T* values, Size step, Size n_cells, Size n_ahead, const T* dense,
                 Size rank, T* out) {
  if (rank < lanes<T>) {
    for (Size l = 0; l < rank; ++l) {
      double total = 0;
      for (Size t = 0; t < n_cells; ++t) total += double(values[t * step]) * dense[Size(indices[t]) * rank + l];
      out[l] = T(total);
    }
    return;
  }
  const Size n_vectors = (rank + lanes<T> - 1) / lanes<T>;
  const auto panel = [&]<int P>(Size v) {
    Size at[P];
    for (int p = 0; p < P; ++p) at[p] = vector_start<T>(v + p, rank);
    row_product_panel<P>(indices, values, step, n_cells, n_ahead, dense, rank, at, out);
  };
  Size v = 0;
  for (; v + 8 <= n_vectors; v += 8) panel.template operator()<8>(v);
  if (v + 4 <= n_vectors) panel.template operator()<4>(v), v += 4;
  if (v + 2 <= n_vectors) panel.template operator()<2>(v), v += 2;
  if (v < n_vectors) panel.template operator()<1>(v);
}

template <class T, class I>
bool spmm(const Pattern<I>& cells, CellValues<T> values, const T* dense, Size rank, T* out, int n_threads) {
  const RowChunks chunks(cells.indptr, cells.n_rows, cells_a_chunk, rows_a_chunk);
  if (!chunks) return false;
  const Size nnz = cells.indptr[cells.n_rows];
  parallel_for(chunks.count(), n_threads, [&](Size chunk, int) {
    for (Size i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      const Size start = cells.indptr[i], stop = cells.indptr[i + 1];
      row_product(cells.indices + start, values.data + start * values.step, values.step, stop - start,
                  nnz - start, dense, rank, out + i * rank);
    }
  });
  return true;
}

// The pattern by columns first, then as above: every output row has one owner and one order of addition.
template <class T, class I>
bool spmm_t(const Pattern<I>& cells, CellValues<T> values, const T* dense, Size rank, T* out, int n_threads) {
  const Size nnz = cells.indptr[cells.n_rows];
  Buffer<I> indptr(cells.n_cols + 1), next(cells.n_cols + 1), rows(nnz);
  Buffer<T> moved(values.step ? nnz : 1);
  if (!indptr || !next || !rows || !moved) return false;
  indptr.fill(0);
  for (Size t = 0; t < nnz; ++t) ++indptr[Size(cells.indices[t]) + 1];
  for (Size j = 0; j < cells.n_cols; ++j) indptr[j + 1] += indptr[j];
  for (Size j = 0; j < cells.n_cols; ++j) next[j] = indptr[j];
  if (!values.step) moved[0] = values.data[0];
  // Each part of the columns has about the same number of cells and is filled by a thread of its own.
  const Size n_parts = n_threads;
  parallel_for(n_parts, n_threads, [&](Size part, int) {
    const Size first = part * nnz / n_parts, last = (part + 1) * nnz / n_parts;
    for (Size i = 0; i < cells.n_rows; ++i) {
      for (Size t = cells.indptr[i]; t < Size(cells.indptr[i + 1]); ++t) {
        const Size j = cells.indices[t];
        if (Size(indptr[j]) < first || Size(indptr[j]) >= last) continue;
        const Size place = next[j]++;
        rows[place] = I(i);
        if (values.step) moved[place] = values.data[t];
      }
    }
  });
  const Pattern<I> by_col{indptr.data(), rows.data(), cells.n_cols, cells.n_rows};
  return spmm<T, I>(by_col, {moved.data(), values.step}, dense, rank, out, n_threads);
}

}  // namespace unseen::UNSEEN_ISA
