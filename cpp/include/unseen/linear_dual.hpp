// Linear classifiers by coordinate descent in the dual, each on rows of its own. A classifier draws its own
// random numbers and is learned on one thread, so threads change nothing.
#pragma once

#include "unseen/parallel.hpp"

namespace unseen::UNSEEN_ISA {

// Small numbers in an order that looks random, the same everywhere.
class Shuffler {
 public:
  explicit Shuffler(std::uint64_t seed) : state_(seed * 2654435769u + 88172645463325252u) {}
  Size below(Size n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return Size(state_ % std::uint64_t(n));
  }

 private:
  std::uint64_t state_;
};

UNSEEN_INLINE double shrunk(double value, double by) {
  return value > by ? value - by : value < -by ? value + by : 0;
}

// In `weights` stands v = sum_i alpha_i t_i x_i on the way; w is v shrunk by l1.
template <class T, class I>
void dual_classifier(const DualProblem<T, I>& p, Size problem, Size* order, double* lengths) {
  const Size first = p.starts[problem], n_rows = p.starts[problem + 1] - first, n_features = p.cells.n_cols;
  T* v = p.weights + problem * n_features;
  for (Size f = 0; f < n_features; ++f) v[f] = 0;
  const auto add = [&](Size row, double by) {
    for (Size t = p.cells.indptr[row]; t < Size(p.cells.indptr[row + 1]); ++t)
      v[p.cells.indices[t]] += T(by * double(p.values[t]));
  };
  for (Size i = 0; i < n_rows; ++i) {
    const Size row = p.rows[first + i];
    double squares = 0;
    for (Size t = p.cells.indptr[row]; t < Size(p.cells.indptr[row + 1]); ++t)
      squares += double(p.values[t]) * double(p.values[t]);
    lengths[i] = squares;
    order[i] = i;
    if (p.alpha[first + i] != 0) add(row, p.alpha[first + i] * p.signs[first + i]);
  }
  Shuffler shuffler(std::uint64_t(p.seed + problem));
  Size n_active = n_rows;
  double ceiling = 1e300;
  for (Size pass = 0; pass < p.max_passes; ++pass) {
    for (Size i = 0; i < n_active; ++i) {
      const Size other = i + shuffler.below(n_active - i), held = order[i];
      order[i] = order[other];
      order[other] = held;
    }
    double worst = 0;
    for (Size at = 0; at < n_active; ++at) {
      const Size i = order[at], row = p.rows[first + i];
      const bool positive = p.signs[first + i] > 0;
      const double sign = positive ? 1 : -1, C = positive ? p.C_positive : p.C_negative;
      const double limit = p.squared ? 1e300 : C, ridge = p.squared ? 0.5 / C : 0;
      double& alpha = p.alpha[first + i];
      double score = 0;
      for (Size t = p.cells.indptr[row]; t < Size(p.cells.indptr[row + 1]); ++t)
        score += shrunk(double(v[p.cells.indices[t]]), p.l1) * double(p.values[t]);
      const double slope = sign * score - (positive ? p.margin_positive : p.margin_negative) + ridge * alpha;
      // A row that sits at a bound, with the slope well on its side, is left out until the rest is solved.
      const bool at_bound = (alpha == 0 && slope > ceiling) || (alpha == limit && slope < -ceiling);
      if (at_bound) {
        order[at--] = order[--n_active];
        order[n_active] = i;
        continue;
      }
      const double wrong = (alpha == 0 && slope > 0) || (alpha == limit && slope < 0) ? 0 : slope;
      worst = larger(worst, wrong < 0 ? -wrong : wrong);
      if (wrong == 0 || lengths[i] + ridge == 0) continue;
      const double next = smaller(larger(alpha - slope / (lengths[i] + ridge), 0.0), limit);
      const double step = next - alpha;
      alpha = next;
      if (step != 0) add(row, step * sign);
    }
    ceiling = worst > 0 ? worst : 1e300;
    if (worst <= p.tol) {
      if (n_active == n_rows) break;
      n_active = n_rows;  // look at all rows again
      ceiling = 1e300;
    }
  }
  for (Size f = 0; f < n_features; ++f) v[f] = T(shrunk(double(v[f]), p.l1));
}

template <class T, class I>
bool linear_duals(const DualProblem<T, I>& p, int n_threads) {
  Size most = 0;
  for (Size c = 0; c < p.n_problems; ++c) most = larger(most, Size(p.starts[c + 1] - p.starts[c]));
  Buffer<Size> orders(most * n_threads);
  Buffer<double> lengths(most * n_threads);
  if (!orders || !lengths) return false;
  parallel_for(p.n_problems, n_threads, [&](Size problem, int thread) {
    dual_classifier(p, problem, orders.data() + most * thread, lengths.data() + most * thread);
  });
  return true;
}

}  // namespace unseen::UNSEEN_ISA
