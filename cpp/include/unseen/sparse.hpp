// Products that touch only stored cells.
#pragma once

#include "unseen/parallel.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr Size prefetch_distance = 16;  // cells ahead in the stream of stored cells
inline constexpr Size rows_a_chunk = 1024;
inline constexpr Size cells_a_partial_sum = 512;  // longer sums are added up in pieces, to keep them accurate

// Rows of any length >= the vector are read as whole vectors, the last of which overlaps its neighbour.
// The other operand of a product is `spread` to match: vector after vector, zero where the row overlaps.
template <class T>
UNSEEN_INLINE Size vector_start(Size v, Size length) {
  return smaller<Size>(v * lanes<T>, length - lanes<T>);
}

// Where entry l of a row lies once spread.
template <class T>
UNSEEN_INLINE Size spread_place(Size l, Size length) {
  const Size whole = length < lanes<T> ? length : (length - 1) / lanes<T> * lanes<T>;
  return l < whole ? l : l + whole + lanes<T> - length;
}

template <class T>
void spread_row(const T* row, Size length, T* spread) {
  for (Size l = 0; l < round_up(length, lanes<T>); ++l) spread[l] = 0;
  for (Size l = 0; l < length; ++l) spread[spread_place<T>(l, length)] = row[l];
}

template <class T>
UNSEEN_INLINE T spread_dot(const T* spread, const T* row, Size length) {
  if (length < lanes<T>) {
    T dot = 0;
    for (Size l = 0; l < length; ++l) dot += spread[l] * row[l];
    return dot;
  }
  Vec<T> s = zero<T>();
  for (Size at = 0; at < length; at += lanes<T>) {
    s += load(spread + at) * load(row + smaller<Size>(at, length - lanes<T>));
  }
  return sum<T>(s);
}

// spread += weight row; where the row overlaps, the sums are meaningless.
template <class T>
UNSEEN_INLINE void spread_add(T weight, const T* row, Size length, T* spread) {
  if (length < lanes<T>) {
    for (Size l = 0; l < length; ++l) spread[l] += weight * row[l];
    return;
  }
  for (Size at = 0; at < length; at += lanes<T>) {
    store(spread + at, load(spread + at) + weight * load(row + smaller<Size>(at, length - lanes<T>)));
  }
}

// Scores of one row: out[t] = x . right[indices[t]].
template <class T, class I>
void row_scores(const T* x, T* spread, const I* indices, Size n_cells, Size n_ahead, const T* right,
                Size rank, T* out) {
  spread_row(x, rank, spread);
  const Size n_vectors = (rank + lanes<T> - 1) / lanes<T>;
  const auto ahead = [&](Size t) {
    if (t + prefetch_distance < n_ahead)
      prefetch_row(right + Size(indices[t + prefetch_distance]) * rank, rank);
  };
  Size t = 0;
  for (; rank >= lanes<T> && t + 4 <= n_cells; t += 4) {
    const T *q0 = right + Size(indices[t]) * rank, *q1 = right + Size(indices[t + 1]) * rank;
    const T *q2 = right + Size(indices[t + 2]) * rank, *q3 = right + Size(indices[t + 3]) * rank;
    for (Size r = 0; r < 4; ++r) ahead(t + r);
    Vec<T> s0 = zero<T>(), s1 = s0, s2 = s0, s3 = s0;
    for (Size v = 0; v < n_vectors; ++v) {
      const Vec<T> xv = load(spread + v * lanes<T>);
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
    ahead(t);
    out[t] = spread_dot(spread, right + Size(indices[t]) * rank, rank);
  }
}

template <class T, class I>
bool sddmm(const Pattern<I>& cells, const T* left, const T* right, Size rank, T* out, int n_threads) {
  const RowChunks chunks(cells.indptr, cells.n_rows, cells_a_chunk, rows_a_chunk);
  const Size width = round_up(rank, lanes<T>);
  Buffer<T> spread(width * n_threads);
  if (!chunks || !spread) return false;
  const Size nnz = cells.indptr[cells.n_rows];
  parallel_for(chunks.count(), n_threads, [&](Size chunk, int thread) {
    for (Size i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      const Size start = cells.indptr[i], stop = cells.indptr[i + 1];
      row_scores(left + i * rank, spread.data() + width * thread, cells.indices + start, stop - start,
                 nnz - start, right, rank, out + start);
    }
  });
  return true;
}

// Columns [at, at + P vectors) of one row of the product.
template <int P, class T, class I>
void row_product_panel(const I* indices, const T* values, Size step, Size n_cells, Size n_ahead,
                       const T* dense, Size rank, const Size (&at)[P], T* out) {
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
      for (Size t = 0; t < n_cells; ++t)
        total += double(values[t * step]) * dense[Size(indices[t]) * rank + l];
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

// First place whose number is at least `wanted`.
template <class I>
Size first_from(const I* numbers, Size count, Size wanted) {
  Size first = 0, last = count;
  while (first < last) {
    const Size middle = first + (last - first) / 2;
    if (Size(numbers[middle]) < wanted)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

// Some columns at a time are brought into order, then multiplied as above: every output row has one owner and
// one order of addition. All columns at once would take as much memory as the cells themselves; every part
// looks at all cells, so few cells are cut into few parts.
inline constexpr Size column_parts = 8, cells_a_part = Size(1) << 19;

template <class T, class I>
bool spmm_t(const Pattern<I>& cells, CellValues<T> values, const T* dense, Size rank, T* out, int n_threads) {
  const Size nnz = cells.indptr[cells.n_rows],
             n_parts = larger<Size>(n_threads, smaller(column_parts, nnz / cells_a_part));
  Buffer<I> indptr(cells.n_cols + 1), next(cells.n_cols + 1);
  Buffer<Size> bounds(n_parts + 1);
  if (!indptr || !next || !bounds) return false;
  indptr.fill(0);
  for (Size t = 0; t < nnz; ++t) ++indptr[Size(cells.indices[t]) + 1];
  for (Size j = 0; j < cells.n_cols; ++j) indptr[j + 1] += indptr[j];
  for (Size j = 0; j < cells.n_cols; ++j) next[j] = indptr[j];
  Size longest = 1;
  bounds[0] = 0;
  for (Size part = 1; part <= n_parts; ++part) {
    bounds[part] =
        part < n_parts ? first_from(indptr.data(), cells.n_cols, part * nnz / n_parts) : cells.n_cols;
    longest = larger(longest, Size(indptr[bounds[part]]) - Size(indptr[bounds[part - 1]]));
  }
  Buffer<I> all_rows(longest * n_threads);
  Buffer<T> all_values(values.step ? longest * n_threads : 1);
  if (!all_rows || !all_values) return false;
  if (!values.step) all_values[0] = values.data[0];
  parallel_for(n_parts, n_threads, [&](Size part, int thread) {
    const Size first = bounds[part], last = bounds[part + 1], start = indptr[first];
    I* rows = all_rows.data() + longest * thread;
    T* moved = all_values.data() + longest * thread * values.step;
    for (Size i = 0; i < cells.n_rows; ++i) {
      for (Size t = cells.indptr[i]; t < Size(cells.indptr[i + 1]); ++t) {
        const Size j = cells.indices[t];
        if (j < first || j >= last) continue;
        const Size place = Size(next[j]++) - start;
        rows[place] = I(i);
        if (values.step) moved[place] = values.data[t];
      }
    }
    for (Size j = first; j < last; ++j) {
      const Size begin = Size(indptr[j]) - start, end = Size(indptr[j + 1]) - start;
      row_product(rows + begin, moved + begin * values.step, values.step, end - begin,
                  Size(indptr[last]) - start - begin, dense, rank, out + j * rank);
    }
  });
  return true;
}

}  // namespace unseen::UNSEEN_ISA
