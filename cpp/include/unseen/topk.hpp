// Best columns of left right' without the matrix of scores: register tiles of scores are compared with the
// k-th best of their row, and only what is better goes into the row's heap.
#pragma once

#include "unseen/dense.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr Size topk_batch = 16 * tile_rows;  // rows that share one run over the columns

template <class T>
struct Candidate {
  T score;
  std::int64_t id;
};

template <int R>
struct Count {};

template <class T>
UNSEEN_INLINE bool worse(const Candidate<T>& a, const Candidate<T>& b) {
  return a.score < b.score || (a.score == b.score && a.id > b.id);
}

// Move the entry at `at` of a heap with the worst on top down to its place.
template <class T>
void sift_down(Candidate<T>* heap, Size size, Size at) {
  const Candidate<T> moving = heap[at];
  for (;;) {
    Size child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && worse(heap[child + 1], heap[child])) ++child;
    if (!worse(heap[child], moving)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moving;
}

template <class T>
struct BestOfRow {
  Candidate<T>* heap;
  Size size, k;

  bool full() const { return size == k; }
  void offer(const Candidate<T>& candidate) {
    if (size < k) {
      heap[size++] = candidate;
      if (size == k) {
        for (Size at = k / 2 - 1; at >= 0; --at) sift_down(heap, k, at);
      }
    } else if (worse(heap[0], candidate)) {
      heap[0] = candidate;
      sift_down(heap, k, Size(0));
    }
  }
  // Best first.
  void sort() {
    if (!full()) {
      for (Size at = size / 2 - 1; at >= 0; --at) sift_down(heap, size, at);
    }
    for (Size end = size - 1; end > 0; --end) {
      const Candidate<T> worst = heap[0];
      heap[0] = heap[end];
      heap[end] = worst;
      sift_down(heap, end, Size(0));
    }
  }
};

template <class I>
bool contains(const I* sorted, Size n, std::int64_t value) {
  Size low = 0, high = n;
  while (low < high) {
    const Size middle = (low + high) / 2;
    if (std::int64_t(sorted[middle]) < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low < n && std::int64_t(sorted[low]) == value;
}

template <class T>
UNSEEN_INLINE bool any_above(const Vec<T> (&scores)[tile_vectors], T bound) {
  auto above = scores[0] > bound;
  for (int v = 1; v < tile_vectors; ++v) above |= scores[v] > bound;
  constexpr int n_words = vector_bytes / 8;
  typedef long long Words __attribute__((vector_size(vector_bytes)));
  const Words words = reinterpret_cast<Words>(above);
  long long any = 0;
  for (int w = 0; w < n_words; ++w) any |= words[w];
  return any != 0;
}

// The columns of one panel side by side for each factor; columns that do not exist score NaN.
template <class T, class I>
void pack_panel(const TopkProblem<T, I>& problem, Size p, T* out) {
  constexpr Size panel = tile_vectors * lanes<T>;
  const Size rank = problem.rank, first = p * panel, count = smaller(panel, problem.n_cols - first);
  const T* right = problem.right + first * rank;
  // Squares of whole vectors are turned in registers: storing number by number would cost more than the
  // products of a few rows.
  const Size whole = count == panel ? rank / lanes<T> * lanes<T> : 0;
  for (Size l = 0; l < whole; l += lanes<T>) {
    for (int v = 0; v < tile_vectors; ++v) {
      turn_square(right + v * lanes<T> * rank + l, rank, out + l * panel + v * lanes<T>, panel);
    }
  }
  for (Size c = 0; c < panel; ++c) {
    for (Size l = whole; l < rank; ++l) {
      out[l * panel + c] = c < count ? right[c * rank + l] : T(__builtin_nan(""));
    }
  }
}

template <class T, class I>
void offer_scores(const TopkProblem<T, I>& problem, Size i, Size p, const Vec<T> (&sums)[tile_vectors],
                  BestOfRow<T>& row) {
  constexpr Size panel = tile_vectors * lanes<T>;
  if (row.full() && !any_above<T>(sums, row.heap[0].score)) return;
  T scores[panel];
  for (int v = 0; v < tile_vectors; ++v) store(scores + v * lanes<T>, sums[v]);
  const I* excluded = nullptr;
  Size n_excluded = 0;
  if (problem.exclude_indptr) {
    excluded = problem.exclude_indices + problem.exclude_indptr[i];
    n_excluded = problem.exclude_indptr[i + 1] - problem.exclude_indptr[i];
  }
  for (Size c = 0; c < smaller(panel, problem.n_cols - p * panel); ++c) {
    // Ids increase, so a later column needs a strictly better score; NaN is never better.
    if (row.full() ? !(scores[c] > row.heap[0].score) : scores[c] != scores[c]) continue;
    const std::int64_t id = problem.col_ids[p * panel + c];
    if (!contains(excluded, n_excluded, id)) row.offer({scores[c], id});
  }
}

// Scores of the rows from `first` on with the columns of a panel; whatever is good enough goes into the
// heaps.
template <class T, class I>
void offer_panel(const TopkProblem<T, I>& problem, Size first, Size n_rows, Size p, const T* packed,
                 const T* left, BestOfRow<T>* best) {
  constexpr Size panel = tile_vectors * lanes<T>;
  const Size rank = problem.rank;
  const auto offer = [&]<int R>(Size r, Count<R>) {
    Vec<T> sums[R][tile_vectors] = {};
    tile_product<R, tile_vectors>(left + r * rank, rank, Size(1), packed, panel, rank, sums);
    for (int t = 0; t < R; ++t) offer_scores(problem, first + r + t, p, sums[t], best[r + t]);
  };
  Size r = 0;
  for (; r + tile_rows <= n_rows; r += tile_rows) offer(r, Count<tile_rows>());
  for (; r + 2 <= n_rows; r += 2) offer(r, Count<2>());
  if (r < n_rows) offer(r, Count<1>());
}

template <class T, class I>
void write_best(const TopkProblem<T, I>& problem, Size i, BestOfRow<T>& best) {
  best.sort();
  for (Size c = 0; c < problem.k; ++c) {
    const bool filled = c < best.size;
    problem.ids[i * problem.k + c] = filled ? best.heap[c].id : -1;
    problem.scores[i * problem.k + c] = filled ? best.heap[c].score : T(__builtin_nan(""));
  }
}

// Few rows: the columns are split between threads, each packs a panel at a time, and the lists are merged.
// Which of two columns is better does not depend on where the columns were split.
template <class T, class I>
bool topk_of_few(const TopkProblem<T, I>& problem, int n_threads) {
  constexpr Size panel = tile_vectors * lanes<T>;
  const Size rank = problem.rank, k = problem.k, n_rows = problem.n_rows;
  const Size n_panels = (problem.n_cols + panel - 1) / panel;
  Buffer<T> packed(panel * rank * n_threads);
  Buffer<Candidate<T>> heaps(n_rows * k * n_threads);
  Buffer<BestOfRow<T>> bests(n_rows * n_threads);
  if (!packed || !heaps || !bests) return false;
  for (Size e = 0; e < n_rows * n_threads; ++e) bests[e] = {heaps.data() + e * k, 0, k};
  parallel_for(Size(n_threads), n_threads, [&](Size part, int) {
    T* own = packed.data() + part * panel * rank;
    for (Size p = n_panels * part / n_threads; p < n_panels * (part + 1) / n_threads; ++p) {
      pack_panel(problem, p, own);
      offer_panel(problem, Size(0), n_rows, p, own, problem.left, bests.data() + part * n_rows);
    }
  });
  for (Size i = 0; i < n_rows; ++i) {
    for (Size part = 1; part < n_threads; ++part) {
      const BestOfRow<T>& other = bests[part * n_rows + i];
      for (Size c = 0; c < other.size; ++c) bests[i].offer(other.heap[c]);
    }
    write_best(problem, i, bests[i]);
  }
  return true;
}

template <class T, class I>
bool topk(const TopkProblem<T, I>& problem, int n_threads) {
  constexpr Size panel = tile_vectors * lanes<T>;
  const Size rank = problem.rank, n_cols = problem.n_cols, k = problem.k;
  if (k == 0) return true;
  const Size n_panels = (n_cols + panel - 1) / panel;
  const Size n_batches = (problem.n_rows + topk_batch - 1) / topk_batch;
  if (n_batches == 1) return topk_of_few(problem, n_threads);
  Buffer<T> packed(n_panels * panel * rank);
  Buffer<Candidate<T>> heaps(topk_batch * k * n_threads);
  Buffer<BestOfRow<T>> bests(topk_batch * n_threads);
  if (!packed || !heaps || !bests) return false;
  parallel_for(n_panels, n_threads,
               [&](Size p, int) { pack_panel(problem, p, packed.data() + p * panel * rank); });
  parallel_for(n_batches, n_threads, [&](Size batch, int thread) {
    const Size first = batch * topk_batch, n_rows = smaller(topk_batch, problem.n_rows - first);
    BestOfRow<T>* best = bests.data() + topk_batch * thread;
    for (Size r = 0; r < n_rows; ++r) best[r] = {heaps.data() + (topk_batch * thread + r) * k, 0, k};
    for (Size p = 0; p < n_panels; ++p) {
      offer_panel(problem, first, n_rows, p, packed.data() + p * panel * rank, problem.left + first * rank,
                  best);
    }
    for (Size r = 0; r < n_rows; ++r) write_best(problem, first + r, best[r]);
  });
  return true;
}

}  // namespace unseen::UNSEEN_ISA
