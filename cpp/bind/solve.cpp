#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>

#include "arrays.hpp"

namespace unseen::bind {

using namespace nb::literals;

template <class T, class I>
void als_solve(In1<I> indptr, In1<I> indices, In1<T> curvature, In1<T> linear, In2<T> other, In2<T> gram,
               std::optional<In2<T>> offset, InOut2<T> out, std::optional<In1<T>> ridge,
               std::optional<In1<T>> shift, std::optional<InOut1<double>> row_values,
               const std::string& method, Size cg_steps, int n_threads, std::optional<In1<T>> gram_scale) {
  const std::size_t n_rows = out.shape(0), rank = out.shape(1), n_cells = indices.shape(0);
  require(other.shape(1) == rank, "other and out must have the same number of columns");
  require(gram.shape(0) == rank && gram.shape(1) == rank, "gram must be square, of the size of the rank");
  require(!offset || (offset->shape(1) == rank && (offset->shape(0) == 1 || offset->shape(0) == n_rows)),
          "offset must have one row, or as many as out, and as many columns");
  require(!ridge || ridge->shape(0) == n_rows, "ridge must have one value a row");
  require(!gram_scale || gram_scale->shape(0) == n_rows, "gram_scale must have one value a row");
  require(!shift || shift->shape(0) == other.shape(0), "shift must have one value a row of other");
  require(!row_values || row_values->shape(0) == n_rows, "row_values must have one value a row");
  require(method == "cholesky" || method == "cg", "method must be 'cholesky' or 'cg'");
  AlsProblem<T, I> problem{};
  problem.cells = pattern(indptr, indices, n_rows, other.shape(0));
  problem.curvature = cell_values(curvature, n_cells);
  problem.linear = cell_values(linear, n_cells);
  problem.other = other.data();
  problem.gram = gram.data();
  problem.offset = offset ? offset->data() : nullptr;
  problem.offset_step = offset && offset->shape(0) == n_rows ? Size(rank) : 0;
  problem.ridge = ridge ? ridge->data() : nullptr;
  problem.gram_scale = gram_scale ? gram_scale->data() : nullptr;
  problem.shift = shift ? shift->data() : nullptr;
  problem.out = out.data();
  problem.row_values = row_values ? row_values->data() : nullptr;
  problem.rank = Size(rank);
  problem.method = method == "cg" ? Method::cg : Method::cholesky;
  problem.cg_steps = cg_steps;
  run(kernels<T, I>().als_solve, n_threads, problem);
}

template <class T, class I>
void als_draw(In1<I> indptr, In1<I> indices, In1<T> curvature, In1<T> linear, In2<T> other, In2<T> precision,
              std::optional<In2<T>> offset, std::optional<In1<T>> shift, In2<T> noise, InOut2<T> out,
              std::optional<InOut2<T>> means, std::optional<InOut2<double>> sizes, int n_threads) {
  const std::size_t n_rows = out.shape(0), rank = out.shape(1), n_cells = indices.shape(0);
  require(other.shape(1) == rank, "other and out must have the same number of columns");
  require(precision.shape(0) == rank && precision.shape(1) == rank,
          "precision must be square, of the size of the rank");
  require(!offset || (offset->shape(1) == rank && (offset->shape(0) == 1 || offset->shape(0) == n_rows)),
          "offset must have one row, or as many as out, and as many columns");
  require(noise.shape(0) == n_rows && noise.shape(1) == rank, "noise must have the shape of out");
  require(!shift || shift->shape(0) == other.shape(0), "shift must have one value a row of other");
  require(!means || (means->shape(0) == n_rows && means->shape(1) == rank),
          "means must have the shape of out");
  require(!sizes || (sizes->shape(0) == rank && sizes->shape(1) == rank + 1),
          "sizes must have a row for each column of out, and one column more than rows");
  DrawProblem<T, I> problem{};
  problem.cells = pattern(indptr, indices, n_rows, other.shape(0));
  problem.curvature = cell_values(curvature, n_cells);
  problem.linear = cell_values(linear, n_cells);
  problem.other = other.data();
  problem.precision = precision.data();
  problem.offset = offset ? offset->data() : nullptr;
  problem.offset_step = offset && offset->shape(0) == n_rows ? Size(rank) : 0;
  problem.shift = shift ? shift->data() : nullptr;
  problem.noise = noise.data();
  problem.out = out.data();
  problem.means = means ? means->data() : nullptr;
  problem.sizes = sizes ? sizes->data() : nullptr;
  problem.rank = Size(rank);
  run(kernels<T, I>().als_draw, n_threads, problem);
}

// Index types do not matter here: one overload for each type of number.
template <class T>
void normals(std::uint64_t seed, std::uint32_t sweep, std::uint32_t block, Size first_row, InOut2<T> out,
             int n_threads) {
  const DrawKey key{std::uint32_t(seed), std::uint32_t(seed >> 32), sweep, block};
  run(kernels<T, std::int32_t>().normals, n_threads, key, first_row, Size(out.shape(0)), Size(out.shape(1)),
      out.data());
}

template <class T>
void define_normals(nb::module_& m) {
  m.def("normals", normals<T>, "seed"_a, "sweep"_a, "block"_a, "first_row"_a, "out"_a.noconvert(),
        "n_threads"_a);
}

// Answers with the number of signs of the fullest row.
template <class T, class I>
Size signs(std::uint64_t seed, std::uint32_t block, Size first_row, Size length, double rate, double size,
           In1<I> skip, InOut1<I> indptr, InOut1<I> indices, InOut1<T> values, int n_threads) {
  const std::size_t n_rows = skip.shape(0);
  require(indptr.shape(0) == n_rows + 1, "indptr must have one entry more than skip");
  require(indices.shape(0) == values.shape(0), "indices and values must be as long");
  require(first_row >= 0 && length >= 0 && length <= Size(std::numeric_limits<I>::max()),
          "first_row and length must be numbers of cells");
  require(rate > 0 && rate <= 1, "rate must lie above 0 and not above 1");
  SignsProblem<T, I> problem{};
  problem.key = {std::uint32_t(seed), std::uint32_t(seed >> 32), 0, block};
  problem.first_row = first_row;
  problem.n_rows = Size(n_rows);
  problem.length = length;
  problem.rate = rate;
  problem.size = T(size);
  problem.skip = skip.data();
  problem.capacity = n_rows ? Size(indices.shape(0) / n_rows) : 0;
  problem.indptr = indptr.data();
  problem.indices = indices.data();
  problem.values = values.data();
  Size most = 0;
  problem.most = &most;
  run(kernels<T, I>().signs, n_threads, problem);
  return most;
}

template <class T, class I>
void ccd_sweep(In1<I> indptr, In1<I> indices, In1<I> csc_indptr, In1<I> csc_indices, In1<I> csc_order,
               In1<T> curvature, In1<T> linear, InOut1<T> scores, InOut2<T> left, InOut2<T> right,
               double background, double target, double reg, double l1, double lower, double upper,
               Size inner, int n_threads) {
  const std::size_t n_rows = left.shape(0), n_cols = right.shape(0), n_cells = indices.shape(0);
  require(left.shape(1) == right.shape(1), "left and right must have the same number of columns");
  require(csc_indices.shape(0) == n_cells && csc_order.shape(0) == n_cells && scores.shape(0) == n_cells,
          "csc_indices, csc_order and scores must have one entry a stored cell");
  CcdProblem<T, I> problem{};
  problem.by_row = pattern(indptr, indices, n_rows, n_cols);
  problem.by_col = pattern(csc_indptr, csc_indices, n_cols, n_rows);
  problem.csc_order = csc_order.data();
  problem.curvature = cell_values(curvature, n_cells);
  problem.linear = cell_values(linear, n_cells);
  problem.scores = scores.data();
  problem.left = left.data();
  problem.right = right.data();
  problem.rank = Size(left.shape(1));
  problem.background = background;
  problem.target = target;
  problem.reg = reg;
  problem.l1 = l1;
  problem.lower = lower;
  problem.upper = upper;
  problem.inner = inner;
  run(kernels<T, I>().ccd_sweep, n_threads, problem);
}

template <class T, class I>
struct Solve {
  static void define(nb::module_& m) {
    m.def("als_solve", als_solve<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
          "curvature"_a.noconvert(), "linear"_a.noconvert(), "other"_a.noconvert(), "gram"_a.noconvert(),
          "offset"_a.noconvert().none(), "out"_a.noconvert(), "ridge"_a.noconvert().none(),
          "shift"_a.noconvert().none(), "row_values"_a.noconvert().none(), "method"_a, "cg_steps"_a,
          "n_threads"_a, "gram_scale"_a.noconvert().none() = nb::none());
    m.def("als_draw", als_draw<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
          "curvature"_a.noconvert(), "linear"_a.noconvert(), "other"_a.noconvert(), "precision"_a.noconvert(),
          "offset"_a.noconvert().none(), "shift"_a.noconvert().none(), "noise"_a.noconvert(),
          "out"_a.noconvert(), "means"_a.noconvert().none(), "sizes"_a.noconvert().none(), "n_threads"_a);
    m.def("signs", signs<T, I>, "seed"_a, "block"_a, "first_row"_a, "length"_a, "rate"_a, "size"_a,
          "skip"_a.noconvert(), "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
          "n_threads"_a);
    m.def("ccd_sweep", ccd_sweep<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
          "csc_indptr"_a.noconvert(), "csc_indices"_a.noconvert(), "csc_order"_a.noconvert(),
          "curvature"_a.noconvert(), "linear"_a.noconvert(), "scores"_a.noconvert(), "left"_a.noconvert(),
          "right"_a.noconvert(), "background"_a, "target"_a, "reg"_a, "l1"_a, "lower"_a, "upper"_a, "inner"_a,
          "n_threads"_a);
  }
};

void define_solve(nb::module_& m) {
  define_all<Solve>(m);
  define_normals<float>(m);
  define_normals<double>(m);
}

}  // namespace unseen::bind
