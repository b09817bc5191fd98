// Alternating least squares, one side: every row solved against fixed factors of the other side.
//
// The matrix that all rows share is diagonalised once, and the factors of the other side are turned into
// the frame of its eigenvectors. There the shared part costs nothing: it is a diagonal, whatever the ridge
// of the row, and the best preconditioner at the same time.
#pragma once

#include "unseen/als_cg.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr Size rows_a_batch = 8 * tile_rows;

// Eigenvectors of the shared matrix, and the factors of the other side seen from them.
template <class T>
struct Frame {
  Size rank, width;
  bool turned = false;
  Buffer<double> values, vectors, work;
  Buffer<T> into, back;  // x_frame = x into, x = x_frame back
  Buffer<T> table_copy;
  const T* table = nullptr;

  Frame(Size rank, Size n_cols, const T* other, bool turned)
      : rank(rank),
        width(padded_width<T>(rank)),
        turned(turned),
        values(rank),
        vectors(rank * rank),
        work(rank * rank + rank),
        into(width * width),
        back(width * width),
        table_copy(turned || width != rank ? n_cols * width : 0),
        table(other) {}
  explicit operator bool() const { return values && vectors && work && into && back && table_copy; }
  // Rows are the same here as outside.
  bool plain() const { return !turned && width == rank; }

  void diagonalise(const T* gram) {
    for (Size e = 0; e < rank * rank; ++e) vectors[e] = gram[e];
    if (!turned) {
      for (Size l = 0; l < rank; ++l) values[l] = gram[l * rank + l];
      return;
    }
    symmetric_eigen(vectors.data(), rank, values.data(), work.data());
    into.fill(0);
    back.fill(0);
    for (Size l = 0; l < rank; ++l) {
      for (Size i = 0; i < rank; ++i) {
        into[i * width + l] = back[l * width + i] = T(vectors[l * rank + i]);
      }
    }
  }

  // Rows of length rank into rows of length width; padded is scratch of the same size as to.
  void enter(const T* rows, Size n_rows, T* to, T* padded) const {
    if (!turned) return copy_padded(rows, n_rows, rank, width, to);
    copy_padded(rows, n_rows, rank, width, padded);
    product(padded, n_rows, into.data(), width, width, to);
  }

  void leave(const T* rows, Size n_rows, T* to, T* padded) const {
    if (turned) product(rows, n_rows, back.data(), width, width, padded);
    const T* from = turned ? padded : rows;
    for (Size i = 0; i < n_rows; ++i) {
      for (Size l = 0; l < rank; ++l) to[i * rank + l] = from[i * width + l];
    }
  }
};

template <class T>
bool is_diagonal(const T* matrix, Size rank) {
  for (Size e = 0; e < rank * rank; ++e) {
    if (e % (rank + 1) != 0 && matrix[e] != 0) return false;
  }
  return true;
}

// Diagonal of a row, and the preconditioner made of it; true when it is safely positive.
template <class T>
bool row_diagonal(const Frame<T>& frame, double scale, double ridge, T* diagonal, T* preconditioner) {
  double least = __DBL_MAX__, largest = 0;
  for (Size l = 0; l < frame.rank; ++l) {
    const double d = scale * frame.values[l] + ridge;
    least = smaller(least, d);
    largest = larger(largest, d);
    diagonal[l] = T(d);
  }
  // Directions without a background keep the scale of the weakest one that has it.
  const double floor = 1e-6 * largest;
  for (Size l = 0; l < frame.rank; ++l) {
    preconditioner[l] = floor > 0 ? T(1 / larger(scale * frame.values[l] + ridge, floor)) : T(1);
  }
  for (Size l = frame.rank; l < frame.width; ++l) diagonal[l] = preconditioner[l] = 1;
  return least > 4 * epsilon<T>() * largest;
}

template <class T, class I>
bool solve_direct(const RowSystem<T, I>& row, bool positive_diagonal, T* x, T* scratch) {
  bool dual = positive_diagonal && row.n_cells * 4 <= row.width * 3;
  for (Size t = 0; dual && t < row.n_cells; ++t) dual = row.c(t) >= 0;
  if (dual ? solve_dual(row, x, scratch) : solve_primal(row, x, scratch)) return true;
  return solve_least_squares(row, x);
}

template <class T, class I>
bool conjugate_gradient(const RowSystem<T, I>& row, const T* preconditioner, Size steps, T* x,
                        const Scores<T>& scores, T* scratch) {
  switch (row.width / lanes<T>) {
    case 1:
      return conjugate_gradient<1>(row, preconditioner, steps, x, scores, scratch);
    case 2:
      return conjugate_gradient<2>(row, preconditioner, steps, x, scores, scratch);
    case 3:
      return conjugate_gradient<3>(row, preconditioner, steps, x, scores, scratch);
    case 4:
      return conjugate_gradient<4>(row, preconditioner, steps, x, scores, scratch);
    case 5:
      return conjugate_gradient<5>(row, preconditioner, steps, x, scores, scratch);
    case 6:
      return conjugate_gradient<6>(row, preconditioner, steps, x, scores, scratch);
    case 7:
      return conjugate_gradient<7>(row, preconditioner, steps, x, scores, scratch);
    case 8:
      return conjugate_gradient<8>(row, preconditioner, steps, x, scores, scratch);
    default:
      return conjugate_gradient<0>(row, preconditioner, steps, x, scores, scratch);
  }
}

template <class T, class I>
bool als_solve(const AlsProblem<T, I>& problem, int n_threads) {
  const Pattern<I>& cells = problem.cells;
  const Size rank = problem.rank;
  if (rank == 0 || cells.n_rows == 0) return true;
  const bool iterative = problem.method == Method::cg;
  Size longest = 0;
  for (Size i = 0; iterative && i < cells.n_rows; ++i) {
    longest = larger(longest, Size(cells.indptr[i + 1] - cells.indptr[i]));
  }
  Frame<T> frame(rank, cells.n_cols, problem.other, !is_diagonal(problem.gram, rank));
  const Size width = frame.width, batch = rows_a_batch * width;
  const Size room = round_up(longest, lanes<T>) + lanes<T>;  // a block may write beyond its cells
  const Size own =
      3 * batch + 2 * width + (width + larger(width, 2 * cells_a_block)) * width + 4 * width + 2 * room;
  const RowChunks chunks(cells.indptr, cells.n_rows, cells_a_chunk,
                         frame.plain() ? cells_a_chunk : rows_a_batch);
  Buffer<T> scratch(own * n_threads), shared_offset(2 * width);
  Buffer<char> failed(n_threads);
  if (!frame || !chunks || !scratch || !shared_offset || !failed) return false;
  failed.fill(0);

  frame.diagonalise(problem.gram);
  if (frame.turned || width != rank) {
    parallel_for((cells.n_cols + rows_a_batch - 1) / rows_a_batch, n_threads, [&](Size chunk, int thread) {
      const Size first = chunk * rows_a_batch, n = smaller(rows_a_batch, cells.n_cols - first);
      frame.enter(problem.other + first * rank, n, frame.table_copy.data() + first * width,
                  scratch.data() + own * thread);
    });
    frame.table = frame.table_copy.data();
  }
  const bool one_offset = problem.offset && problem.offset_step == 0;
  if (one_offset) frame.enter(problem.offset, 1, shared_offset.data(), shared_offset.data() + width);

  parallel_for(chunks.count(), n_threads, [&](Size chunk, int thread) {
    const Size first = chunks.begin(chunk), n_rows = chunks.end(chunk) - first;
    T *solution = scratch.data() + own * thread, *offsets = solution + batch, *spare = offsets + batch;
    T *diagonal = spare + batch, *preconditioner = diagonal + width, *work = preconditioner + width;
    const Scores<T> scores{scratch.data() + own * (thread + 1) - 2 * room,
                           scratch.data() + own * (thread + 1) - room};
    if (frame.plain()) {
      solution = problem.out + first * rank;
    } else if (iterative) {
      frame.enter(problem.out + first * rank, n_rows, solution, spare);
    }
    if (problem.offset && !one_offset) {
      frame.enter(problem.offset + first * rank, n_rows, offsets, spare);
    }
    bool positive = false;
    Fetcher<T, I> fetcher{cells.indices, cells.indptr[first], cells.indptr[cells.n_rows], frame.table, width};
    for (Size i = first; i < first + n_rows; ++i) {
      if (i == first || problem.ridge || problem.gram_scale) {
        const double scale = problem.gram_scale ? double(problem.gram_scale[i]) : 1.0;
        const double ridge = problem.ridge ? double(problem.ridge[i]) : 0.0;
        positive = row_diagonal(frame, scale, ridge, diagonal, preconditioner);
      }
      const Size start = cells.indptr[i];
      RowSystem<T, I> row{cells.indices + start,
                          Size(cells.indptr[i + 1]) - start,
                          {problem.curvature.data + start * problem.curvature.step, problem.curvature.step},
                          {problem.linear.data + start * problem.linear.step, problem.linear.step},
                          frame.table,
                          diagonal,
                          nullptr,
                          problem.shift,
                          rank,
                          width,
                          start,
                          &fetcher,
                          Size(cells.indptr[cells.n_rows]) - start};
      if (problem.offset) row.offset = one_offset ? shared_offset.data() : offsets + (i - first) * width;
      T* x = solution + (i - first) * width;
      const bool stepped =
          iterative && conjugate_gradient(row, preconditioner, problem.cg_steps, x, scores, work);
      if (!stepped && (iterative || !solve_direct(row, positive, x, work)) && !solve_least_squares(row, x)) {
        failed[thread] = 1;
      }
      if (problem.row_values) {
        problem.row_values[i] = stepped ? row_value_of(row, x, scores.reached) : row_value(row, x);
      }
    }
    if (!frame.plain()) frame.leave(solution, n_rows, problem.out + first * rank, spare);
  });
  for (int thread = 0; thread < n_threads; ++thread) {
    if (failed[thread]) return false;
  }
  return true;
}

}  // namespace unseen::UNSEEN_ISA
