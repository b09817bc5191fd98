// A regressor z = V'x learned from pairs of rows that should or should not be near, by AdaGrad steps that
// touch only the features of the rows visited.
#pragma once

#include "unseen/sgns.hpp"

namespace unseen::UNSEEN_ISA {

// z = sum over the features of row i of value times the regressor's row.
template <class T, class I>
void embed_row(const JointProblem<T, I>& p, Size i, T* z) {
  for (Size l = 0; l < p.rank; ++l) z[l] = 0;
  for (Size t = p.cells.indptr[i]; t < Size(p.cells.indptr[i + 1]); ++t)
    plain_add(p.values[t], p.regressor + Size(p.cells.indices[t]) * p.rank, p.rank, z);
}

// Ascend along d objective / d z = pull of row i; every feature of the row shares it.
template <class T, class I>
void adagrad_row(const JointProblem<T, I>& p, Size i, const T* pull) {
  const T rate = T(p.rate), tiny = T(1e-10);
  for (Size t = p.cells.indptr[i]; t < Size(p.cells.indptr[i + 1]); ++t) {
    const Size place = Size(p.cells.indices[t]) * p.rank;
    const T value = p.values[t], reg = p.reg[p.cells.indices[t]];
    T *row = p.regressor + place, *squares = p.squares + place;
    for (Size l = 0; l < p.rank; ++l) {
      const T step = value * pull[l] - reg * row[l];
      squares[l] += step * step;
      row[l] += rate * step / square_root(squares[l] + tiny);
    }
  }
}

// Gradient of log sigmoid(sign gamma K(z, w)) in z (added to pull_z) and in w (written to pull_w).
template <class T, class I>
void joint_pair(const JointProblem<T, I>& p, bool positive, const T* z, double z_norm, const T* w, T* pull_z,
                T* pull_w) {
  const Size rank = p.rank;
  const double dot = plain_dot(z, w, rank);
  double kernel = dot, across = 1, own_z = 0, own_w = 0;
  if (p.cosine) {
    const double w_norm = __builtin_sqrt(plain_dot(w, w, rank));
    if (z_norm == 0 || w_norm == 0) {  // no direction: similarity zero, nothing to learn from
      for (Size l = 0; l < rank; ++l) pull_w[l] = 0;
      return;
    }
    across = 1 / (z_norm * w_norm);
    kernel = dot * across;
    own_z = -kernel / (z_norm * z_norm);
    own_w = -kernel / (w_norm * w_norm);
  }
  const double slope = positive ? p.gamma * sigmoid(-p.gamma * kernel)
                                : -p.negative_weight * p.gamma * sigmoid(p.gamma * kernel);
  const T cross = T(slope * across), back_z = T(slope * own_z), back_w = T(slope * own_w);
  for (Size l = 0; l < rank; ++l) {
    pull_z[l] += cross * w[l] + back_z * z[l];
    pull_w[l] = cross * z[l] + back_w * w[l];
  }
}

template <class T, class I>
bool joint(const JointProblem<T, I>& problem, int n_threads) {
  const JointProblem<T, I>& p = problem;
  const Size rank = p.rank, n_others = p.n_positives + p.n_negatives;
  const Size width = round_up(rank, 16), own = (2 + 2 * n_others) * width;
  Buffer<T> scratch(own * n_threads);
  if (!scratch) return false;
  constexpr Size visits_a_chunk = 64;
  const Size n_chunks = (p.n_visits + visits_a_chunk - 1) / visits_a_chunk;
  parallel_for(n_chunks, n_threads, [&](Size chunk, int thread) {
    T *z = scratch.data() + own * thread, *pull_z = z + width;
    const Size last = smaller((chunk + 1) * visits_a_chunk, p.n_visits);
    for (Size visit = chunk * visits_a_chunk; visit < last; ++visit) {
      const Size i = p.visits[visit];
      embed_row(p, i, z);
      const double z_norm = __builtin_sqrt(plain_dot(z, z, rank));
      for (Size l = 0; l < rank; ++l) pull_z[l] = 0;
      const auto other = [&](Size c) {
        return Size(c < p.n_positives ? p.positives[visit * p.n_positives + c]
                                      : p.negatives[visit * p.n_negatives + c - p.n_positives]);
      };
      for (Size c = 0; c < n_others; ++c) {
        T *w = z + (2 + 2 * c) * width, *pull_w = w + width;
        embed_row(p, other(c), w);
        joint_pair(p, c < p.n_positives, z, z_norm, w, pull_z, pull_w);
      }
      adagrad_row(p, i, pull_z);
      for (Size c = 0; c < n_others; ++c) adagrad_row(p, other(c), z + (3 + 2 * c) * width);
    }
  });
  return true;
}

}  // namespace unseen::UNSEEN_ISA
