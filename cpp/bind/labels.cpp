#include "arrays.hpp"

namespace unseen::bind {

using namespace nb::literals;

template <class T, class I>
void label_splits(In1<I> indptr, In1<I> indices, In1<T> values, In1<I> gain_indptr, In1<I> gain_indices,
                  In1<T> gain_values, In1<I> starts, In1<I> rows, InOut1<std::int8_t> sides,
                  InOut2<T> weights, double C, double tol, Size max_passes, Size max_rounds, Size n_labels,
                  int n_threads) {
  require(indptr.shape(0) >= 1 && gain_indptr.shape(0) == indptr.shape(0), "features and gains differ in rows");
  require(values.shape(0) == indices.shape(0) && gain_values.shape(0) == gain_indices.shape(0),
          "values must be one a stored cell");
  require(sides.shape(0) == rows.shape(0), "sides must be one a row of a node");
  const std::size_t n_rows = indptr.shape(0) - 1, n_nodes = weights.shape(0);
  SplitProblem<T, I> problem{};
  problem.cells = pattern(indptr, indices, n_rows, weights.shape(1));
  problem.values = values.data();
  problem.gains = pattern(gain_indptr, gain_indices, n_rows, std::size_t(n_labels));
  problem.gain_values = gain_values.data();
  const Pattern<I> nodes = pattern(starts, rows, n_nodes, n_rows);
  problem.starts = nodes.indptr;
  problem.rows = nodes.indices;
  problem.n_nodes = nodes.n_rows;
  problem.sides = reinterpret_cast<signed char*>(sides.data());
  problem.weights = weights.data();
  problem.C = C;
  problem.tol = tol;
  problem.max_passes = max_passes;
  problem.max_rounds = max_rounds;
  run(kernels<T, I>().label_splits, n_threads, problem);
}

template <class T, class I>
void linear_duals(In1<I> indptr, In1<I> indices, In1<T> values, In1<I> starts, In1<I> rows,
                  In1<std::int8_t> signs, InOut1<double> alpha, InOut2<T> weights, double C_positive,
                  double C_negative, double margin_positive, double margin_negative, double l1, double tol,
                  bool squared, Size max_passes, Size seed, int n_threads) {
  require(indptr.shape(0) >= 1 && values.shape(0) == indices.shape(0), "values must be one a stored cell");
  require(signs.shape(0) == rows.shape(0) && alpha.shape(0) == rows.shape(0),
          "signs and alpha must be one a row of a classifier");
  const std::size_t n_rows = indptr.shape(0) - 1, n_problems = weights.shape(0);
  DualProblem<T, I> problem{};
  problem.cells = pattern(indptr, indices, n_rows, weights.shape(1));
  problem.values = values.data();
  const Pattern<I> own = pattern(starts, rows, n_problems, n_rows);
  problem.starts = own.indptr;
  problem.rows = own.indices;
  problem.n_problems = own.n_rows;
  problem.signs = reinterpret_cast<const signed char*>(signs.data());
  problem.alpha = alpha.data();
  problem.weights = weights.data();
  problem.C_positive = C_positive;
  problem.C_negative = C_negative;
  problem.margin_positive = margin_positive;
  problem.margin_negative = margin_negative;
  problem.l1 = l1;
  problem.tol = tol;
  problem.squared = squared;
  problem.max_passes = max_passes;
  problem.seed = seed;
  run(kernels<T, I>().linear_duals, n_threads, problem);
}

template <class T, class I>
void margin_sweep(In1<I> indptr, In1<I> indices, In1<T> values, In1<I> label_indptr, In1<I> label_indices,
                  In1<I> visits, In1<I> slots, InOut1<I> active, InOut1<double> alpha, InOut2<T> weights,
                  In1<double> costs, InOut1<double> gaps, double l1, double feature_share, double label_share,
                  Size n_candidates, Size seed, int n_threads) {
  const std::size_t n_rows = gaps.shape(0), n_features = weights.shape(0), n_labels = weights.shape(1);
  require(values.shape(0) == indices.shape(0), "values must be one a stored cell");
  require(costs.shape(0) == n_rows && alpha.shape(0) == active.shape(0), "a cost a row, a number a slot");
  MarginProblem<T, I> problem{};
  problem.cells = pattern(indptr, indices, n_rows, n_features);
  problem.values = values.data();
  problem.labels = pattern(label_indptr, label_indices, n_rows, n_labels);
  problem.visits = visits.data();
  problem.n_visits = Size(visits.shape(0));
  require(slots.shape(0) == n_rows + 1 && slots.data()[0] == 0 &&
              std::size_t(slots.data()[n_rows]) == active.shape(0),
          "slots must start at 0 and end at their number");
  problem.slots = slots.data();
  problem.active = active.data();
  problem.alpha = alpha.data();
  problem.weights = weights.data();
  problem.costs = costs.data();
  problem.gaps = gaps.data();
  problem.l1 = l1;
  problem.feature_share = feature_share;
  problem.label_share = label_share;
  problem.n_candidates = n_candidates;
  problem.seed = seed;
  run(kernels<T, I>().margin_sweep, n_threads, problem);
}

template <class T, class I>
struct Labels {
  static void define(nb::module_& m) {
    m.def("label_splits", label_splits<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
          "values"_a.noconvert(), "gain_indptr"_a.noconvert(), "gain_indices"_a.noconvert(),
          "gain_values"_a.noconvert(), "starts"_a.noconvert(), "rows"_a.noconvert(), "sides"_a.noconvert(),
          "weights"_a.noconvert(), "C"_a, "tol"_a, "max_passes"_a, "max_rounds"_a, "n_labels"_a,
          "n_threads"_a);
    m.def("linear_duals", linear_duals<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
          "values"_a.noconvert(), "starts"_a.noconvert(), "rows"_a.noconvert(), "signs"_a.noconvert(),
          "alpha"_a.noconvert(), "weights"_a.noconvert(), "C_positive"_a, "C_negative"_a,
          "margin_positive"_a, "margin_negative"_a, "l1"_a, "tol"_a, "squared"_a, "max_passes"_a, "seed"_a,
          "n_threads"_a);
    m.def("margin_sweep", margin_sweep<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
          "values"_a.noconvert(), "label_indptr"_a.noconvert(), "label_indices"_a.noconvert(),
          "visits"_a.noconvert(), "slots"_a.noconvert(), "active"_a.noconvert(), "alpha"_a.noconvert(),
          "weights"_a.noconvert(), "costs"_a.noconvert(), "gaps"_a.noconvert(), "l1"_a, "feature_share"_a,
          "label_share"_a, "n_candidates"_a, "seed"_a, "n_threads"_a);
  }
};

void define_labels(nb::module_& m) { define_all<Labels>(m); }

}  // namespace unseen::bind
