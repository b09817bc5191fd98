// Splits of nodes of trees: rows go to the side whose ranking of labels suits them better, and sparse logistic
// weights learn to tell the sides apart. Nodes are independent, so threads change nothing.
#pragma once

#include "unseen/sgns.hpp"
#include "unseen/topk.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr int label_split_inner = 4;  // passes over the weights that are not zero, after one over all
inline constexpr double label_split_border = 1e-6;  // above rounding: products that cancel are on the second side

// One thread's arrays for one node: labels and features are numbered in the order in which its rows name them.
template <class T>
struct NodeScratch {
  Size* labels;
  double *sums, *discounts;  // of both sides, one after the other
  Candidate<double>* heap;
  char* seen;
  Size *features, *place, *starts, *cell_rows;
  T* cell_values;  // by feature
  double *scores, *pulls, *curvature;
  char* active;
};

// Alternate rankings of labels and sides of rows until no row changes sides; how many are on the first side.
template <class T, class I>
Size rank_sides(const SplitProblem<T, I>& p, Size first, Size last, NodeScratch<T>& s) {
  const Size n_labels = p.gains.n_cols;
  Size n_seen = 0;
  const auto each_gain = [&](Size i, const auto& visit) {
    const Size row = p.rows[i];
    for (Size t = p.gains.indptr[row]; t < Size(p.gains.indptr[row + 1]); ++t)
      visit(Size(p.gains.indices[t]), double(p.gain_values[t]));
  };
  for (Size i = first; i < last; ++i) {
    each_gain(i, [&](Size label, double) {
      if (!s.seen[label]) s.labels[n_seen++] = label;
      s.seen[label] = 1;
    });
  }
  for (Size round = 0; round < p.max_rounds; ++round) {
    for (Size c = 0; c < n_seen; ++c) s.sums[s.labels[c]] = s.sums[n_labels + s.labels[c]] = 0;
    for (Size i = first; i < last; ++i) {
      double* own = s.sums + (p.sides[i] > 0 ? 0 : n_labels);
      each_gain(i, [&](Size label, double gain) { own[label] += gain; });
    }
    for (int side = 0; side < 2; ++side) {
      BestOfRow<double> best{s.heap, 0, n_seen};
      for (Size c = 0; c < n_seen; ++c)
        best.offer({s.sums[side * n_labels + s.labels[c]], std::int64_t(s.labels[c])});
      best.sort();
      for (Size c = 0; c < n_seen; ++c)
        s.discounts[side * n_labels + best.heap[c].id] = 1 / __builtin_log2(double(c + 2));
    }
    bool changed = false;
    for (Size i = first; i < last; ++i) {
      double ahead = 0;
      each_gain(i, [&](Size label, double gain) {
        ahead += gain * (s.discounts[label] - s.discounts[n_labels + label]);
      });
      const signed char side = ahead > 0 ? 1 : ahead < 0 ? -1 : p.sides[i];
      changed |= side != p.sides[i];
      p.sides[i] = side;
    }
    if (!changed) break;
  }
  for (Size c = 0; c < n_seen; ++c) s.seen[s.labels[c]] = 0;
  Size n_first = 0;
  for (Size i = first; i < last; ++i) n_first += p.sides[i] > 0;
  return n_first;
}

// Values of the node's rows by feature; the number of features.
template <class T, class I>
Size gather_features(const SplitProblem<T, I>& p, Size first, Size last, NodeScratch<T>& s) {
  Size n_found = 0;
  const auto each_cell = [&](const auto& visit) {
    for (Size i = first; i < last; ++i) {
      const Size row = p.rows[i];
      for (Size t = p.cells.indptr[row]; t < Size(p.cells.indptr[row + 1]); ++t)
        visit(i - first, Size(p.cells.indices[t]), p.values[t]);
    }
  };
  each_cell([&](Size, Size feature, T) {
    if (s.place[feature] < 0) {
      s.place[feature] = n_found;
      s.starts[n_found] = 0;
      s.features[n_found++] = feature;
    }
    ++s.starts[s.place[feature]];
  });
  Size end = 0;
  for (Size f = 0; f < n_found; ++f) {
    const Size count = s.starts[f];
    s.starts[f] = end;
    end += count;
  }
  each_cell([&](Size i, Size feature, T value) {
    const Size at = s.starts[s.place[feature]]++;
    s.cell_rows[at] = i;
    s.cell_values[at] = value;
  });
  for (Size f = n_found; f > 0; --f) s.starts[f] = s.starts[f - 1];
  s.starts[0] = 0;
  return n_found;
}

// Coordinate descent on |w|_1 + sum_i C_i log(1 + exp(-side_i w.x_i)). A step minimises a parabola above the
// objective, so none raises it.
template <class T, class I>
void logistic_weights(const SplitProblem<T, I>& p, Size first, Size last, Size n_features, double C_first,
                      double C_second, T* weights, NodeScratch<T>& s) {
  const Size n_rows = last - first;
  const auto side = [&](Size i) { return double(p.sides[first + i]); };
  const auto weight = [&](Size i) { return p.sides[first + i] > 0 ? C_first : C_second; };
  for (Size i = 0; i < n_rows; ++i) {
    s.scores[i] = 0;
    s.pulls[i] = -0.5 * side(i) * weight(i);  // slope of a row's loss in its score
  }
  for (Size f = 0; f < n_features; ++f) {
    double total = 0;
    for (Size t = s.starts[f]; t < s.starts[f + 1]; ++t)
      total += 0.25 * weight(s.cell_rows[t]) * double(s.cell_values[t]) * double(s.cell_values[t]);
    s.curvature[f] = total;
  }
  double start = 0;
  Size pass = 0;
  while (pass < p.max_passes) {
    double violation = 0;
    for (int part = 0; part < 1 + label_split_inner && pass < p.max_passes; ++part, ++pass) {
      for (Size f = 0; f < n_features; ++f) {
        if ((part > 0 && !s.active[f]) || s.curvature[f] == 0) continue;
        T& w = weights[s.features[f]];
        double slope = 0;
        for (Size t = s.starts[f]; t < s.starts[f + 1]; ++t)
          slope += s.pulls[s.cell_rows[t]] * double(s.cell_values[t]);
        if (part == 0) {
          const double size = slope < 0 ? -slope : slope;
          const double wrong = w > 0 ? slope + 1 : w < 0 ? slope - 1 : size > 1 ? size - 1 : 0;
          violation = larger(violation, wrong < 0 ? -wrong : wrong);
        }
        const double target = double(w) - slope / s.curvature[f], reach = 1 / s.curvature[f];
        const double next = target > reach ? target - reach : target < -reach ? target + reach : 0;
        const double step = double(T(next)) - double(w);
        if (step != 0) {
          w = T(next);
          for (Size t = s.starts[f]; t < s.starts[f + 1]; ++t) {
            const Size i = s.cell_rows[t];
            s.scores[i] += step * double(s.cell_values[t]);
            s.pulls[i] = -side(i) * weight(i) * sigmoid(-side(i) * s.scores[i]);
          }
        }
        if (part == 0) s.active[f] = w != 0;
      }
    }
    if (start == 0) start = violation;
    if (violation <= p.tol * start) break;
  }
  for (Size i = 0; i < n_rows; ++i) p.sides[first + i] = s.scores[i] > label_split_border ? 1 : -1;
}

template <class T, class I>
bool label_splits(const SplitProblem<T, I>& p, int n_threads) {
  Size most_rows = 0, most_cells = 0;
  for (Size node = 0; node < p.n_nodes; ++node) {
    Size cells = 0;
    for (Size i = p.starts[node]; i < Size(p.starts[node + 1]); ++i)
      cells += p.cells.indptr[p.rows[i] + 1] - p.cells.indptr[p.rows[i]];
    most_rows = larger(most_rows, Size(p.starts[node + 1] - p.starts[node]));
    most_cells = larger(most_cells, cells);
  }
  const Size n_labels = p.gains.n_cols, n_features = p.cells.n_cols;
  Buffer<Size> by_label(n_labels * n_threads), by_feature((3 * n_features + 1) * n_threads),
      cell_rows(most_cells * n_threads);
  Buffer<double> numbers((4 * n_labels + 2 * most_rows + n_features) * n_threads);
  Buffer<Candidate<double>> heaps(n_labels * n_threads);
  Buffer<char> marks((n_labels + n_features) * n_threads);
  Buffer<T> cell_values(most_cells * n_threads);
  if (!by_label || !by_feature || !cell_rows || !numbers || !heaps || !marks || !cell_values) return false;
  marks.fill(0);
  by_feature.fill(-1);
  parallel_for(p.n_nodes, n_threads, [&](Size node, int thread) {
    NodeScratch<T> s{};
    s.labels = by_label.data() + n_labels * thread;
    s.sums = numbers.data() + (4 * n_labels + 2 * most_rows + n_features) * thread;
    s.discounts = s.sums + 2 * n_labels;
    s.scores = s.discounts + 2 * n_labels;
    s.pulls = s.scores + most_rows;
    s.curvature = s.pulls + most_rows;
    s.heap = heaps.data() + n_labels * thread;
    s.seen = marks.data() + (n_labels + n_features) * thread;
    s.active = s.seen + n_labels;
    s.place = by_feature.data() + (3 * n_features + 1) * thread;
    s.features = s.place + n_features;
    s.starts = s.features + n_features;
    s.cell_rows = cell_rows.data() + most_cells * thread;
    s.cell_values = cell_values.data() + most_cells * thread;
    const Size first = p.starts[node], last = p.starts[node + 1], n_rows = last - first;
    T* weights = p.weights + node * n_features;
    for (Size f = 0; f < n_features; ++f) weights[f] = 0;
    const Size n_first = rank_sides(p, first, last, s);
    if (n_first == 0 || n_first == n_rows) return;
    const Size n_found = gather_features(p, first, last, s);
    logistic_weights(p, first, last, n_found, p.C * double(n_rows) / double(n_first),
                     p.C * double(n_rows) / double(n_rows - n_first), weights, s);
    for (Size f = 0; f < n_found; ++f) s.place[s.features[f]] = -1;
  });
  return true;
}

}  // namespace unseen::UNSEEN_ISA
