#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "arrays.hpp"

namespace unseen::bind {

using namespace nb::literals;

template <class T, class I>
nb::object topk(In2<T> left, In2<T> right, Size k, std::optional<std::pair<In1<I>, In1<I>>> exclude,
                In1<std::int64_t> col_ids, int n_threads) {
  require(left.shape(1) == right.shape(1), "left and right must have the same number of columns");
  require(col_ids.shape(0) == right.shape(0), "col_ids must have one id for each row of right");
  require(k >= 0, "k must not be negative");
  TopkProblem<T, I> problem{};
  problem.left = left.data();
  problem.right = right.data();
  problem.n_rows = Size(left.shape(0));
  problem.n_cols = Size(right.shape(0));
  problem.rank = Size(left.shape(1));
  problem.k = k;
  if (exclude) {
    const auto cells = pattern(exclude->first, exclude->second, left.shape(0), right.shape(0));
    problem.exclude_indptr = cells.indptr;
    problem.exclude_indices = cells.indices;
  }
  problem.col_ids = col_ids.data();
  auto ids = make_array<std::int64_t>({left.shape(0), std::size_t(k)}, problem.ids);
  auto scores = make_array<T>({left.shape(0), std::size_t(k)}, problem.scores);
  run(kernels<T, I>().topk, n_threads, problem);
  return nb::make_tuple(ids, scores);
}

template <class T, class I>
struct Rank {
  static void define(nb::module_& m) {
    m.def("topk", topk<T, I>, "left"_a.noconvert(), "right"_a.noconvert(), "k"_a,
          "exclude"_a.noconvert().none(), "col_ids"_a.noconvert(), "n_threads"_a);
  }
};

void define_rank(nb::module_& m) {
  define_all<Rank>(m);
}

}  // namespace unseen::bind
