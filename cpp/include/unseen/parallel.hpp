// Work in chunks that do not depend on the number of threads, so neither do the results.
#pragma once

#if defined(UNSEEN_PLAIN_THREADS)
#include <atomic>
#include <thread>
#include <vector>
#elif defined(_OPENMP)
#include <omp.h>
#endif

#include "unseen/memory.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr Size cells_a_chunk = 4096;

// Call body(chunk, thread) for every chunk, each chunk once, in no particular order. Plain threads are for
// the thread sanitiser, which does not see the barriers of OpenMP.
template <class Body>
void parallel_for(Size n_chunks, int n_threads, const Body& body) {
#if defined(UNSEEN_PLAIN_THREADS)
  std::atomic<Size> next = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < int(smaller<Size>(n_threads, n_chunks)); ++thread) {
    threads.emplace_back([&, thread] {
      for (Size chunk = next++; chunk < n_chunks; chunk = next++) body(chunk, thread);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return;
#elif defined(_OPENMP)
  const int threads = int(smaller<Size>(n_threads, n_chunks));
  if (threads > 1) {
#pragma omp parallel num_threads(threads)
    {
      const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1)
      for (Size chunk = 0; chunk < n_chunks; ++chunk) body(chunk, thread);
    }
    return;
  }
#endif
  for (Size chunk = 0; chunk < n_chunks; ++chunk) body(chunk, 0);
}

// Consecutive rows cut into chunks of about equal work: at most max_rows rows, and no more cells than
// cells_a_chunk unless a single row has them. Heavy chunks come first, so none is left for the end.
class RowChunks {
 public:
  template <class I>
  RowChunks(const I* indptr, Size n_rows, Size cells_a_chunk, Size max_rows)
      : starts_(n_rows + 1), order_(n_rows) {
    if (!starts_ || !order_) return;
    Size begin = 0;
    while (begin < n_rows) {
      Size end = begin + 1;
      while (end < n_rows && end - begin < max_rows && indptr[end + 1] - indptr[begin] <= cells_a_chunk)
        ++end;
      starts_[count_++] = begin;
      begin = end;
    }
    starts_[count_] = n_rows;
    Size placed = 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (Size c = 0; c < count_; ++c) {
        const bool heavy = indptr[starts_[c + 1]] - indptr[starts_[c]] > cells_a_chunk;
        if (heavy == (pass == 0)) order_[placed++] = c;
      }
    }
  }
  explicit operator bool() const { return starts_ && order_; }
  Size count() const { return count_; }
  Size begin(Size chunk) const { return starts_[order_[chunk]]; }
  Size end(Size chunk) const { return starts_[order_[chunk] + 1]; }

 private:
  Buffer<Size> starts_, order_;
  Size count_ = 0;
};

}  // namespace unseen::UNSEEN_ISA
