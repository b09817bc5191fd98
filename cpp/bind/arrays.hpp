// Array arguments: their types, and the checks that keep native code inside its memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <new>
#include <stdexcept>

#include "dispatch.hpp"

namespace unseen::bind {

namespace nb = nanobind;

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

// Fresh NumPy array, and the pointer to fill it.
template <class T>
Out<T> make_array(std::initializer_list<std::size_t> shape, T*& data) {
  std::size_t count = 1;
  for (const std::size_t extent : shape) count *= extent;
  data = new T[count ? count : 1];
  nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
  return Out<T>(data, shape, owner);
}

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

template <class I>
Pattern<I> pattern(const In1<I>& indptr, const In1<I>& indices, std::size_t n_rows, std::size_t n_cols) {
  require(indptr.shape(0) == n_rows + 1, "indptr must have one entry more than there are rows");
  require(indptr.data()[0] == 0 && std::size_t(indptr.data()[n_rows]) == indices.shape(0),
          "indptr must start at 0 and end at the number of stored cells");
  return {indptr.data(), indices.data(), Size(n_rows), Size(n_cols)};
}

template <class T>
CellValues<T> cell_values(const In1<T>& values, std::size_t n_cells) {
  require(values.shape(0) == n_cells || values.shape(0) == 1, "values must be one, or one a stored cell");
  return {values.data(), values.shape(0) == n_cells ? Size(1) : Size(0)};
}

template <class T, class I>
const Kernels<T, I>& kernels() {
  const Table& table = *dispatch().table;
  if constexpr (sizeof(T) == 4) {
    if constexpr (sizeof(I) == 4)
      return table.f32_i32;
    else
      return table.f32_i64;
  } else {
    if constexpr (sizeof(I) == 4)
      return table.f64_i32;
    else
      return table.f64_i64;
  }
}

// Run a kernel without the interpreter's lock; kernels report a lack of memory by returning false.
template <class Kernel, class... Arguments>
void run(Kernel kernel, int n_threads, const Arguments&... arguments) {
  require(n_threads >= 1, "n_threads must be at least 1");
  bool done;
  {
    nb::gil_scoped_release release;
    done = kernel(arguments..., n_threads);
  }
  if (!done) throw std::bad_alloc();
}

// Register a family of overloads: float32/float64 x 32/64-bit indices.
template <template <class, class> class Define>
void define_all(nb::module_& m) {
  Define<float, std::int32_t>::define(m);
  Define<float, std::int64_t>::define(m);
  Define<double, std::int32_t>::define(m);
  Define<double, std::int64_t>::define(m);
}

}  // namespace unseen::bind
