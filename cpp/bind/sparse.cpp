#include "arrays.hpp"

namespace unseen::bind {

using namespace nb::literals;

template <class T, class I>
Out<T> sddmm(In1<I> indptr, In1<I> indices, In2<T> left, In2<T> right, int n_threads) {
  require(left.shape(1) == right.shape(1), "left and right must have the same number of columns");
  const auto cells = pattern(indptr, indices, left.shape(0), right.shape(0));
  T* out;
  auto result = make_array<T>({indices.shape(0)}, out);
  run(kernels<T, I>().sddmm, n_threads, cells, left.data(), right.data(), Size(left.shape(1)), out);
  return result;
}

template <class T, class I>
Out<T> spmm(In1<I> indptr, In1<I> indices, In1<T> data, In2<T> dense, int n_threads) {
  require(indptr.shape(0) >= 1, "indptr must not be empty");
  const std::size_t n_rows = indptr.shape(0) - 1;
  const auto cells = pattern(indptr, indices, n_rows, dense.shape(0));
  T* out;
  auto result = make_array<T>({n_rows, dense.shape(1)}, out);
  run(kernels<T, I>().spmm, n_threads, cells, cell_values(data, indices.shape(0)), dense.data(),
      Size(dense.shape(1)), out);
  return result;
}

template <class T, class I>
Out<T> spmm_t(In1<I> indptr, In1<I> indices, In1<T> data, In2<T> dense, std::size_t n_cols, int n_threads) {
  const auto cells = pattern(indptr, indices, dense.shape(0), n_cols);
  T* out;
  auto result = make_array<T>({n_cols, dense.shape(1)}, out);
  run(kernels<T, I>().spmm_t, n_threads, cells, cell_values(data, indices.shape(0)), dense.data(),
      Size(dense.shape(1)), out);
  return result;
}

template <class T>
Out<T> gram(In2<T> dense, int n_threads) {
  T* out;
  auto result = make_array<T>({dense.shape(1), dense.shape(1)}, out);
  run(kernels<T, std::int32_t>().gram, n_threads, dense.data(), Size(dense.shape(0)), Size(dense.shape(1)),
      out);
  return result;
}

template <class T, class I>
struct Sparse {
  static void define(nb::module_& m) {
    m.def("sddmm", sddmm<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "left"_a.noconvert(),
          "right"_a.noconvert(), "n_threads"_a);
    m.def("spmm", spmm<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
          "dense"_a.noconvert(), "n_threads"_a);
    m.def("spmm_t", spmm_t<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
          "dense"_a.noconvert(), "n_cols"_a, "n_threads"_a);
  }
};

void define_sparse(nb::module_& m) {
  define_all<Sparse>(m);
  m.def("gram", gram<float>, "dense"_a.noconvert(), "n_threads"_a);
  m.def("gram", gram<double>, "dense"_a.noconvert(), "n_threads"_a);
}

}  // namespace unseen::bind
