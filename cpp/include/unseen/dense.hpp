// Small dense products with register tiles.
#pragma once

#include "unseen/parallel.hpp"

namespace unseen::UNSEEN_ISA {

// sums[r][v] += sum over l < depth of a[r * a_row + l * a_depth] * b[l * b_depth + v-th vector].
template <int R, int V, class T>
UNSEEN_INLINE void tile_product(const T* a, Size a_row, Size a_depth, const T* b, Size b_depth, Size depth,
                                Vec<T> (&sums)[R][V]) {
  for (Size l = 0; l < depth; ++l) {
    Vec<T> right[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) right[v] = load(b + l * b_depth + v * lanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const T left = a[r * a_row + l * a_depth];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sums[r][v] += left * right[v];
    }
  }
}

template <int R, int V, class T>
void product_tile(const T* a, Size a_row, const T* b, Size b_depth, Size depth, T* c, Size c_row) {
  Vec<T> sums[R][V] = {};
  tile_product<R, V>(a, a_row, 1, b, b_depth, depth, sums);
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) store(c + r * c_row + v * lanes<T>, sums[r][v]);
  }
}

template <int V, class T>
void product_columns(const T* a, Size n_rows, const T* b, Size b_depth, Size depth, T* c, Size c_row) {
  Size i = 0;
  for (; i + tile_rows <= n_rows; i += tile_rows) {
    product_tile<tile_rows, V>(a + i * depth, depth, b, b_depth, depth, c + i * c_row, c_row);
  }
  for (; i < n_rows; ++i) product_tile<1, V>(a + i * depth, depth, b, b_depth, depth, c + i * c_row, c_row);
}

// c = a b for row-major a (n_rows x depth), b (depth x width) and c; width a multiple of the vector.
template <class T>
void product(const T* a, Size n_rows, const T* b, Size depth, Size width, T* c) {
  Size at = 0;
  for (; at + tile_vectors * lanes<T> <= width; at += tile_vectors * lanes<T>) {
    product_columns<tile_vectors>(a, n_rows, b + at, width, depth, c + at, width);
  }
  for (; at < width; at += lanes<T>) product_columns<1>(a, n_rows, b + at, width, depth, c + at, width);
}

// Rows of a symmetric matrix that a tile of its upper triangle covers; divides every padded width.
inline constexpr int gram_rows = 4;

template <int V, class T>
void gram_tile(const T* scaled, const T* rows, Size width, Size n, Size i, Size j, T* out) {
  Vec<T> sums[gram_rows][V];
  for (int r = 0; r < gram_rows; ++r) {
    for (int v = 0; v < V; ++v) sums[r][v] = load(out + (i + r) * width + j + v * lanes<T>);
  }
  tile_product<gram_rows, V>(scaled + i, 1, width, rows + j, width, n, sums);
  for (int r = 0; r < gram_rows; ++r) {
    for (int v = 0; v < V; ++v) store(out + (i + r) * width + j + v * lanes<T>, sums[r][v]);
  }
}

// out += scaled' rows for two n x width blocks, of which only the part with j >= i is meant to be read.
template <class T>
void add_gram(const T* scaled, const T* rows, Size width, Size n, T* out) {
  for (Size i = 0; i < width; i += gram_rows) {
    Size j = i / lanes<T> * lanes<T>;
    for (; j + tile_vectors * lanes<T> <= width; j += tile_vectors * lanes<T>) {
      gram_tile<tile_vectors>(scaled, rows, width, n, i, j, out);
    }
    for (; j < width; j += lanes<T>) gram_tile<1>(scaled, rows, width, n, i, j, out);
  }
}

// A width that holds the rank in whole vectors and whole tiles.
template <class T>
Size padded_width(Size rank) {
  return round_up(larger<Size>(rank, 1), larger<Size>(lanes<T>, gram_rows));
}

template <class T>
void copy_padded(const T* from, Size n_rows, Size rank, Size width, T* to) {
  for (Size i = 0; i < n_rows; ++i) {
    for (Size l = 0; l < rank; ++l) to[i * width + l] = from[i * rank + l];
    for (Size l = rank; l < width; ++l) to[i * width + l] = 0;
  }
}

// Gram matrix of all columns, width x width, of which the part j >= i is valid: blocks of rows are summed in
// working precision, blocks added up in double and in order.
template <class T>
bool gram_sums(const T* dense, Size n_rows, Size rank, double* total, int n_threads) {
  constexpr Size rows_a_block = 64, rows_a_part = 64 * rows_a_block;
  const Size width = padded_width<T>(rank), area = width * width;
  const Size n_parts = (n_rows + rows_a_part - 1) / rows_a_part;
  // A window of parts at a time bounds the memory whatever the number of rows.
  const Size window = smaller<Size>(n_parts, 32);
  const Size own = rows_a_block * width + area;
  Buffer<double> parts(window * area);
  Buffer<T> scratch(own * n_threads);
  if (!parts || !scratch) return false;
  for (Size e = 0; e < area; ++e) total[e] = 0;
  for (Size first = 0; first < n_parts; first += window) {
    const Size n_here = smaller(window, n_parts - first);
    parallel_for(n_here, n_threads, [&](Size p, int thread) {
      T *block = scratch.data() + own * thread, *sums = block + rows_a_block * width;
      double* part = parts.data() + p * area;
      for (Size e = 0; e < area; ++e) part[e] = 0;
      const Size stop = smaller((first + p + 1) * rows_a_part, n_rows);
      for (Size i = (first + p) * rows_a_part; i < stop; i += rows_a_block) {
        const Size n = smaller(rows_a_block, stop - i);
        copy_padded(dense + i * rank, n, rank, width, block);
        for (Size e = 0; e < area; ++e) sums[e] = 0;
        add_gram(block, block, width, n, sums);
        for (Size e = 0; e < area; ++e) part[e] += sums[e];
      }
    });
    for (Size p = 0; p < n_here; ++p) {
      for (Size e = 0; e < area; ++e) total[e] += parts[p * area + e];
    }
  }
  return true;
}

template <class T>
bool gram(const T* dense, Size n_rows, Size rank, T* out, int n_threads) {
  const Size width = padded_width<T>(rank);
  Buffer<double> total(width * width);
  if (!total || !gram_sums(dense, n_rows, rank, total.data(), n_threads)) return false;
  for (Size i = 0; i < rank; ++i) {
    for (Size j = i; j < rank; ++j) out[i * rank + j] = out[j * rank + i] = T(total[i * width + j]);
  }
  return true;
}

}  // namespace unseen::UNSEEN_ISA
