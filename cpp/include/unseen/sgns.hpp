// Stochastic gradient steps on pairs of rows with given negatives. On one thread the order of steps is
// fixed; on more the threads write to the same tables without locks, and results vary.
#pragma once

#include "unseen/parallel.hpp"

namespace unseen::UNSEEN_ISA {

template <class T>
UNSEEN_INLINE double plain_dot(const T* a, const T* b, Size rank) {
  if (rank < lanes<T>) {
    double total = 0;
    for (Size l = 0; l < rank; ++l) total += double(a[l]) * b[l];
    return total;
  }
  Vec<T> s = zero<T>();
  Size l = 0;
  for (; l + lanes<T> <= rank; l += lanes<T>) s += load(a + l) * load(b + l);
  double total = sum<T>(s);
  for (; l < rank; ++l) total += double(a[l]) * b[l];
  return total;
}

template <class T>
UNSEEN_INLINE void plain_add(T weight, const T* from, Size rank, T* to) {
  Size l = 0;
  for (; l + lanes<T> <= rank; l += lanes<T>) store(to + l, load(to + l) + weight * load(from + l));
  for (; l < rank; ++l) to[l] += weight * from[l];
}

// 1 / (1 + exp(-x)) without overflow.
UNSEEN_INLINE double sigmoid(double x) {
  if (x >= 0) return 1.0 / (1.0 + __builtin_exp(-x));
  const double e = __builtin_exp(x);
  return e / (1.0 + e);
}

template <class T, class I>
void sgns_pair(const SgnsProblem<T, I>& p, Size pair, T* pull) {
  const Size rank = p.rank, center = p.centers[pair];
  const double share = p.n_pairs > 1 ? double(pair) / double(p.n_pairs - 1) : 0.0;
  const double rate = p.first_rate + (p.last_rate - p.first_rate) * share;
  T* x = p.words + center * rank;
  for (Size l = 0; l < rank; ++l) pull[l] = 0;
  for (Size t = -1; t < p.n_negatives; ++t) {
    const Size target = t < 0 ? p.positives[pair] : p.negatives[pair * p.n_negatives + t];
    if (p.words == p.contexts && target == center) continue;
    T* y = p.contexts + target * rank;
    const double score = plain_dot(x, y, rank);
    const T step = T(rate * (t < 0 ? sigmoid(-score) : -sigmoid(score)));
    plain_add(step, y, rank, pull);
    plain_add(step, x, rank, y);
  }
  plain_add(T(1), pull, rank, x);
}

template <class T, class I>
bool sgns(const SgnsProblem<T, I>& problem, int n_threads) {
  const Size width = round_up(problem.rank, 16);
  Buffer<T> pulls(width * n_threads);
  if (!pulls) return false;
  constexpr Size pairs_a_chunk = 1024;
  const Size n_chunks = (problem.n_pairs + pairs_a_chunk - 1) / pairs_a_chunk;
  parallel_for(n_chunks, n_threads, [&](Size chunk, int thread) {
    const Size last = smaller((chunk + 1) * pairs_a_chunk, problem.n_pairs);
    for (Size pair = chunk * pairs_a_chunk; pair < last; ++pair)
      sgns_pair(problem, pair, pulls.data() + width * thread);
  });
  return true;
}

}  // namespace unseen::UNSEEN_ISA
