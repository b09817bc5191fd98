// Vectors of the instruction set that this translation unit is compiled for.
//
// Everything below lives in a namespace named after the instruction set, and nothing here uses templates
// of the standard library: the linker keeps only one copy of a weak symbol, and that copy must never be
// the one with AVX instructions when the machine has none.
#pragma once

#include "unseen/api.hpp"

#ifndef UNSEEN_ISA
#error "define UNSEEN_ISA as the namespace of the instruction set"
#endif

#define UNSEEN_INLINE inline __attribute__((always_inline))

namespace unseen::UNSEEN_ISA {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
inline constexpr int tile_vectors = 4;  // width of a register tile; 32 registers hold 6 x 4 sums and operands
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
inline constexpr int tile_vectors = 2;
#else
inline constexpr int vector_bytes = 16;
inline constexpr int tile_vectors = 2;
#endif
inline constexpr int tile_rows = 6;

template <class T, int Lanes>
struct VectorType;
template <int Lanes>
struct VectorType<float, Lanes> {
  typedef float type __attribute__((vector_size(Lanes * 4)));
};
template <int Lanes>
struct VectorType<double, Lanes> {
  typedef double type __attribute__((vector_size(Lanes * 8)));
};

template <class T>
inline constexpr int lanes = vector_bytes / int(sizeof(T));
template <class T>
using Vec = typename VectorType<T, lanes<T>>::type;
template <class T>
using Vec4 = typename VectorType<T, 4>::type;

template <class T>
UNSEEN_INLINE Vec<T> load(const T* from) {
  Vec<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
UNSEEN_INLINE void store(T* to, Vec<T> v) {
  __builtin_memcpy(to, &v, sizeof v);
}

template <class T>
UNSEEN_INLINE Vec<T> zero() {
  return Vec<T>{};
}

template <class T>
UNSEEN_INLINE Vec<T> broadcast(T value) {
  return value - Vec<T>{};
}

// Sum neighbouring halves until four lanes are left.
template <class T>
UNSEEN_INLINE Vec4<T> fold(Vec<T> v) {
  if constexpr (lanes<T> == 16) {
    auto w = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
             __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_shufflevector(w, w, 0, 1, 2, 3) + __builtin_shufflevector(w, w, 4, 5, 6, 7);
  } else if constexpr (lanes<T> == 8) {
    return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
  } else if constexpr (lanes<T> == 4) {
    return v;
  } else {
    return Vec4<T>{v[0], v[1], 0, 0};
  }
}

template <class T>
UNSEEN_INLINE T sum(Vec<T> v) {
  const Vec4<T> w = fold<T>(v);
  return (w[0] + w[2]) + (w[1] + w[3]);
}

// The sums of four vectors, as one vector; every lane is added in the same order as in sum().
template <class T>
UNSEEN_INLINE Vec4<T> sum_each(Vec<T> a, Vec<T> b, Vec<T> c, Vec<T> d) {
  const Vec4<T> fa = fold<T>(a), fb = fold<T>(b), fc = fold<T>(c), fd = fold<T>(d);
  const Vec4<T> ab =
      __builtin_shufflevector(fa, fb, 0, 4, 1, 5) + __builtin_shufflevector(fa, fb, 2, 6, 3, 7);
  const Vec4<T> cd =
      __builtin_shufflevector(fc, fd, 0, 4, 1, 5) + __builtin_shufflevector(fc, fd, 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

template <int... At>
struct Places {};
template <int N, int... At>
struct PlacesTo : PlacesTo<N - 1, N - 1, At...> {};
template <int... At>
struct PlacesTo<0, At...> {
  using type = Places<At...>;
};

// Of a 2 x 2 square of blocks that are `step` lanes wide, exchange the two off the diagonal.
template <int step, class V, int... At>
UNSEEN_INLINE void exchange(V& a, V& b, Places<At...>) {
  constexpr int n = sizeof...(At);
  const V upper = __builtin_shufflevector(a, b, ((At & step) ? n + At - step : At)...);
  b = __builtin_shufflevector(a, b, ((At & step) ? n + At : At + step)...);
  a = upper;
}

template <class T, int step>
UNSEEN_INLINE void turn_blocks(Vec<T> (&rows)[lanes<T>]) {
  if constexpr (step < lanes<T>) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i) {
      if (!(i & step)) exchange<step>(rows[i], rows[i + step], typename PlacesTo<lanes<T>>::type());
    }
    turn_blocks<T, 2 * step>(rows);
  }
}

// The transposed square of as many rows as a vector has lanes.
template <class T>
UNSEEN_INLINE void turn_square(const T* from, Size from_row, T* to, Size to_row) {
  Vec<T> rows[lanes<T>];
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; ++i) rows[i] = load(from + i * from_row);
  turn_blocks<T, 1>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; ++i) store(to + i * to_row, rows[i]);
}

template <class T>
UNSEEN_INLINE T epsilon();
template <>
UNSEEN_INLINE float epsilon<float>() {
  return __FLT_EPSILON__;
}
template <>
UNSEEN_INLINE double epsilon<double>() {
  return __DBL_EPSILON__;
}

UNSEEN_INLINE float square_root(float x) {
  return __builtin_sqrtf(x);
}
UNSEEN_INLINE double square_root(double x) {
  return __builtin_sqrt(x);
}

template <class T>
UNSEEN_INLINE T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
UNSEEN_INLINE T larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
UNSEEN_INLINE T magnitude(T a) {
  return a < 0 ? -a : a;
}

UNSEEN_INLINE Size round_up(Size n, Size unit) {
  return (n + unit - 1) / unit * unit;
}

template <class T>
UNSEEN_INLINE void prefetch_row(const T* row, Size width) {
  for (Size byte = 0; byte < width * Size(sizeof(T)); byte += 64) {
    __builtin_prefetch(reinterpret_cast<const char*>(row) + byte);
  }
}

}  // namespace unseen::UNSEEN_ISA
