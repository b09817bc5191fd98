// Rows that share the most labels, by walking the inverted index of a row's labels. One counter a row and
// thread, no n x n matrix.
#pragma once

#include "unseen/topk.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr Size cooccurrence_rows = 32;  // a chunk; rows differ much in cost, so chunks are small

// Monotone in the similarity for a fixed row i. A quotient of small integers: equal similarities are equal
// bits, so that ties are ties everywhere.
UNSEEN_INLINE double similarity_key(Similarity similarity, std::int64_t shared, std::int64_t n_labels) {
  const std::int64_t top = similarity == Similarity::cosine ? shared * shared : shared;
  return double(top) / double(n_labels);
}

template <class I>
bool cooccurrence(const CooccurrenceProblem<I>& problem, int n_threads) {
  const Pattern<I>&rows = problem.rows, &index = problem.index;
  const Size n = rows.n_rows, k = problem.k;
  if (k == 0) return true;
  Buffer<std::int32_t> counters(n * n_threads);
  Buffer<I> touched_rows(n * n_threads);
  Buffer<Candidate<double>> heaps(k * n_threads);
  Buffer<char> marks(rows.n_cols * n_threads);
  if (!counters || !touched_rows || !heaps || !marks) return false;
  counters.fill(0);
  marks.fill(0);
  const Size n_chunks = (n + cooccurrence_rows - 1) / cooccurrence_rows;
  parallel_for(n_chunks, n_threads, [&](Size chunk, int thread) {
    std::int32_t* shared = counters.data() + n * thread;
    I* touched = touched_rows.data() + n * thread;
    char* mark = marks.data() + rows.n_cols * thread;
    const Size last = smaller((chunk + 1) * cooccurrence_rows, n);
    for (Size i = chunk * cooccurrence_rows; i < last; ++i) {
      Size n_touched = 0;
      for (Size t = rows.indptr[i]; t < Size(rows.indptr[i + 1]); ++t) {
        const Size label = rows.indices[t];
        for (Size u = index.indptr[label]; u < Size(index.indptr[label + 1]); ++u) {
          const I j = index.indices[u];
          if (shared[j]++ == 0) touched[n_touched++] = j;
        }
      }
      BestOfRow<double> best{heaps.data() + k * thread, 0, k};
      for (Size c = 0; c < n_touched; ++c) {
        const Size j = touched[c];
        if (j == i) continue;
        const Size n_labels = rows.indptr[j + 1] - rows.indptr[j];
        best.offer({similarity_key(problem.similarity, shared[j], n_labels), std::int64_t(j)});
      }
      // By id from here on: equal scores sort by id, once they are a heap again.
      for (Size c = 0; c < best.size; ++c) best.heap[c].score = 0;
      for (Size at = best.size / 2 - 1; at >= 0; --at) sift_down(best.heap, best.size, at);
      best.sort();
      if (problem.recount) {
        for (Size t = rows.indptr[i]; t < Size(rows.indptr[i + 1]); ++t) mark[rows.indices[t]] = 1;
      }
      for (Size c = 0; c < best.size; ++c) {
        const Size j = best.heap[c].id;
        std::int32_t count = shared[j];
        if (problem.recount) {
          count = 0;
          for (Size t = rows.indptr[j]; t < Size(rows.indptr[j + 1]); ++t) count += mark[rows.indices[t]];
        }
        problem.ids[i * k + c] = I(j);
        problem.counts[i * k + c] = count;
      }
      problem.sizes[i] = best.size;
      if (problem.recount) {
        for (Size t = rows.indptr[i]; t < Size(rows.indptr[i + 1]); ++t) mark[rows.indices[t]] = 0;
      }
      for (Size c = 0; c < n_touched; ++c) shared[touched[c]] = 0;
    }
  });
  return true;
}

}  // namespace unseen::UNSEEN_ISA
