// Block-coordinate ascent in the dual of the multi-label margin loss with an L1 penalty: a row at a time over the
// labels that it has used so far and those that violate its margin most. Rows share the weights, so one thread works.
#pragma once

#include "unseen/linear_dual.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr int margin_halvings = 100;

// One thread's arrays.
template <class T>
struct MarginScratch {
  T* scores;      // of all labels
  char* taken;    // labels that the row has or uses
  double *first, *second, *next;  // where free steps would lead: of own labels, of others; the solution
  double* sums;   // of the sizes of a row's features
};

// Sum of what is above `level`.
UNSEEN_INLINE double above(const double* values, Size n, double level) {
  double total = 0;
  for (Size i = 0; i < n; ++i) total += larger(values[i] - level, 0.0);
  return total;
}

// The level above which `values` sum to `wanted` > 0.
inline double simplex_level(const double* values, Size n, double wanted) {
  double high = values[0];
  for (Size i = 1; i < n; ++i) high = larger(high, values[i]);
  double low = high - wanted;
  for (int i = 0; i < margin_halvings; ++i) {
    const double middle = 0.5 * (low + high);
    (above(values, n, middle) > wanted ? low : high) = middle;
  }
  double total = 0;
  Size count = 0;
  for (Size i = 0; i < n; ++i) {
    if (values[i] <= low) continue;
    total += values[i];
    ++count;
  }
  return count ? (total - wanted) / double(count) : low;
}

// Nearest point to (first, second) with no number below zero and equal sums of both, at most `most`.
inline void nearest_pair(const double* first, Size n_first, const double* second, Size n_second, double most,
                         double* out) {
  double high = first[0], low = second[0];
  for (Size i = 1; i < n_first; ++i) high = larger(high, first[i]);
  for (Size i = 1; i < n_second; ++i) low = larger(low, second[i]);
  low = -low;
  if (low >= high) {
    for (Size i = 0; i < n_first + n_second; ++i) out[i] = 0;
    return;
  }
  for (int i = 0; i < margin_halvings; ++i) {
    const double middle = 0.5 * (low + high);
    (above(first, n_first, middle) > above(second, n_second, -middle) ? low : high) = middle;
  }
  // The numbers that are not zero are known now, and with them the level to the last digit.
  const double about = 0.5 * (low + high);
  double total = 0;
  Size count = 0;
  for (Size i = 0; i < n_first; ++i) {
    if (first[i] <= about) continue;
    total += first[i];
    ++count;
  }
  for (Size i = 0; i < n_second; ++i) {
    if (second[i] <= -about) continue;
    total -= second[i];
    ++count;
  }
  double level_first = count ? total / double(count) : about, level_second = -level_first;
  if (above(first, n_first, level_first) > most) {
    level_first = simplex_level(first, n_first, most);
    level_second = simplex_level(second, n_second, most);
  }
  for (Size i = 0; i < n_first; ++i) out[i] = larger(first[i] - level_first, 0.0);
  for (Size i = 0; i < n_second; ++i) out[n_first + i] = larger(second[i] - level_second, 0.0);
}

// Scores of the labels from `begin` to `end`, by all features of a row or by as many drawn in proportion to their
// size.
template <class T, class I>
void margin_scores(const MarginProblem<T, I>& p, Size row, Size begin, Size end, Shuffler& draw,
                   MarginScratch<T>& s) {
  const Size from = p.cells.indptr[row], n_cells = p.cells.indptr[row + 1] - from, n_labels = p.labels.n_cols;
  const T l1 = T(p.l1);
  const auto add = [&](Size cell, T by) {
    const T* v = p.weights + Size(p.cells.indices[cell]) * n_labels;
    for (Size k = begin; k < end; ++k) {
      const T value = v[k], inside = value > l1 ? l1 : value < -l1 ? -l1 : value;
      s.scores[k] += by * (value - inside);
    }
  };
  for (Size k = begin; k < end; ++k) s.scores[k] = 0;
  if (p.feature_share >= 1) {
    for (Size t = from; t < from + n_cells; ++t) add(t, p.values[t]);
    return;
  }
  double total = 0;
  for (Size t = 0; t < n_cells; ++t) {
    const double value = double(p.values[from + t]);
    s.sums[t] = total += value < 0 ? -value : value;
  }
  const Size n_draws = larger<Size>(Size(p.feature_share * double(n_cells)), 1);
  for (Size i = 0; i < n_draws; ++i) {
    const double at = total * double(draw.below(Size(1) << 53)) * 0x1p-53;
    Size t = 0;
    while (t + 1 < n_cells && s.sums[t] <= at) ++t;
    const double size = total / double(n_draws);
    add(from + t, T(p.values[from + t] < 0 ? -size : size));
  }
}

template <class T, class I>
void margin_row(const MarginProblem<T, I>& p, Size row, Shuffler& draw, MarginScratch<T>& s) {
  const Size from = p.cells.indptr[row], to = p.cells.indptr[row + 1], n_labels = p.labels.n_cols;
  const Size own = p.labels.indptr[row + 1] - p.labels.indptr[row];
  const double C = p.costs[row];
  double squares = 0;
  for (Size t = from; t < to; ++t) squares += double(p.values[t]) * double(p.values[t]);
  p.gaps[row] = 0;
  if (own == 0 || own == n_labels || squares == 0 || C == 0) return;
  I* active = p.active + p.slots[row];
  double* alpha = p.alpha + p.slots[row];
  const Size room = p.slots[row + 1] - p.slots[row];
  Size n_active = own;
  while (n_active < room && active[n_active] >= 0) ++n_active;
  for (Size a = 0; a < n_active; ++a) s.taken[active[a]] = 1;

  const Size n_parts = p.label_share >= 1 ? 1 : smaller(Size(1 / p.label_share), n_labels);
  const Size part = n_parts == 1 ? 0 : draw.below(n_parts);
  const Size begin = n_labels * part / n_parts, end = n_labels * (part + 1) / n_parts;
  margin_scores(p, row, begin, end, draw, s);
  const bool exact = n_parts == 1 && p.feature_share >= 1;
  // What was drawn finds candidates; steps need the scores as they are.
  const auto score = [&](Size label) {
    if (exact) return double(s.scores[label]);
    double total = 0;
    for (Size t = from; t < to; ++t)
      total += double(p.values[t]) * shrunk(double(p.weights[Size(p.cells.indices[t]) * n_labels + label]), p.l1);
    return total;
  };
  double lowest = 1e300, highest = -1e300, used = 0;
  for (Size a = 0; a < n_active; ++a) {
    const double z = score(Size(active[a]));
    s.next[a] = z;  // for the moment
    if (a < own) {
      lowest = smaller(lowest, z);
      used += alpha[a] * (1 - z);
    } else {
      highest = larger(highest, z);
      used += alpha[a] * z;
    }
  }
  for (Size found = 0; found < p.n_candidates && n_active < room; ++found) {
    Size best = -1;
    for (Size k = begin; k < end; ++k)
      if (!s.taken[k] && (best < 0 || s.scores[k] > s.scores[best])) best = k;
    if (best < 0) break;
    const double z = score(best);
    highest = larger(highest, z);
    if (1 + z - lowest <= 0) break;
    s.taken[best] = 1;
    active[n_active] = I(best);
    alpha[n_active] = 0;
    s.next[n_active++] = z;
  }
  if (n_active == own && own < n_labels) {  // nothing violates the margin, and nothing ever did
    for (Size a = 0; a < own; ++a) s.taken[active[a]] = 0;
    return;
  }
  p.gaps[row] = C * larger(1 + highest - lowest, 0.0) - used;
  for (Size a = 0; a < own; ++a) s.first[a] = alpha[a] + (1 - s.next[a]) / squares;
  for (Size a = own; a < n_active; ++a) s.second[a - own] = alpha[a] + s.next[a] / squares;
  nearest_pair(s.first, own, s.second, n_active - own, C, s.next);
  for (Size a = 0; a < n_active; ++a) {
    const double step = (a < own ? 1 : -1) * (s.next[a] - alpha[a]);
    alpha[a] = s.next[a];
    s.taken[active[a]] = 0;
    if (step == 0) continue;
    for (Size t = from; t < to; ++t)
      p.weights[Size(p.cells.indices[t]) * n_labels + active[a]] += T(step * double(p.values[t]));
  }
  Size kept = own;
  for (Size a = own; a < n_active; ++a) {
    if (alpha[a] == 0) continue;
    active[kept] = active[a];
    alpha[kept++] = alpha[a];
  }
  for (Size a = kept; a < n_active; ++a) {
    active[a] = -1;
    alpha[a] = 0;
  }
}

template <class T, class I>
bool margin_sweep(const MarginProblem<T, I>& p, int) {
  Size most_room = 0, most_cells = 0;
  for (Size i = 0; i < p.cells.n_rows; ++i) {
    most_room = larger(most_room, Size(p.slots[i + 1] - p.slots[i]));
    most_cells = larger(most_cells, Size(p.cells.indptr[i + 1] - p.cells.indptr[i]));
  }
  Buffer<T> scores(p.labels.n_cols);
  Buffer<char> taken(p.labels.n_cols);
  Buffer<double> numbers(3 * most_room + most_cells);
  if (!scores || !taken || !numbers) return false;
  taken.fill(0);
  MarginScratch<T> s{};
  s.scores = scores.data();
  s.taken = taken.data();
  s.first = numbers.data();
  s.second = s.first + most_room;
  s.next = s.second + most_room;
  s.sums = s.next + most_room;
  Shuffler draw(std::uint64_t(p.seed));
  for (Size i = 0; i < p.n_visits; ++i) margin_row(p, Size(p.visits[i]), draw, s);
  return true;
}

}  // namespace unseen::UNSEEN_ISA
