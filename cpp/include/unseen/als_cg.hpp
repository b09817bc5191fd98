// Conjugate gradient on the system of one row: a few passes over the factors of its cells.
//
// A pass takes as many cells at once as a vector has lanes, so that their scores come out as one vector. The
// scores are kept: the value of the solution then needs no pass of its own.
#pragma once

#include "unseen/als_rows.hpp"

namespace unseen::UNSEEN_ISA {

inline constexpr Size cells_a_flush = 512;  // longer sums are added up in pieces, to keep them accurate
inline constexpr Size cells_lead = 64;      // prefetch distance where passes over a row leave time for more
inline constexpr Size bytes_near = Size(1)
                                   << 18;  // factors of a row that stay in a near cache between passes
inline constexpr Size near_ahead = 16;     // prefetch distance where they do not

// Scores of the cells of a row, and those of the direction of a step.
template <class T>
struct Scores {
  T *reached, *along;
};

// Sums of neighbouring lanes: even lanes of the result belong to a, odd ones to b, in units of `step` lanes.
template <class T, int step>
UNSEEN_INLINE Vec<T> fold_two(Vec<T> a, Vec<T> b) {
  exchange<step>(a, b, typename PlacesTo<lanes<T>>::type());
  return a + b;
}

template <class T>
inline constexpr int leaf_cells = lanes<T> < 4 ? lanes<T> : 4;

// Every unit of so many lanes holds a part of the sums: the whole of them, in each unit.
template <class T, int unit>
UNSEEN_INLINE Vec<T> whole_sums(Vec<T> parts) {
  if constexpr (unit < lanes<T>) {
    return whole_sums<T, 2 * unit>(fold_two<T, unit>(parts, parts));
  } else {
    return parts;
  }
}

// What a row is multiplied with: in registers if it fits, else read as it is needed.
template <int V, class T>
struct RowVector {
  Vec<T> kept[V > 0 ? V : 1];
  const T* from;

  UNSEEN_INLINE explicit RowVector(const T* from) : from(from) {
    for (int v = 0; v < V; ++v) kept[v] = load(from + v * lanes<T>);
  }
  UNSEEN_INLINE Vec<T> operator[](Size v) const { return V > 0 ? kept[v] : load(from + v * lanes<T>); }
};

// q_t . x for as many cells as N, a power of two: lane t of the result, folded over units of N lanes.
template <int V, int N, int from, class T, class Factor>
UNSEEN_INLINE Vec<T> scores_of(const Factor& factor, const RowVector<V, T>& x, Size n_vectors) {
  if constexpr (N > leaf_cells<T>) {
    const Vec<T> first = scores_of<V, N / 2, from>(factor, x, n_vectors);
    return fold_two<T, N / 2>(first, scores_of<V, N / 2, from + N / 2>(factor, x, n_vectors));
  } else {
    Vec<T> s[N] = {};
    const T* q[N];
    for (int r = 0; r < N; ++r) q[r] = factor(from + r);
    const auto add = [&](Size v) __attribute__((always_inline)) {
      const Vec<T> xv = x[v];
#pragma GCC unroll 4
      for (int r = 0; r < N; ++r) s[r] += xv * load(q[r] + v * lanes<T>);
    };
    if constexpr (V > 0) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) add(v);
    } else {
      for (Size v = 0; v < n_vectors; ++v) add(v);
    }
    if constexpr (N == 2) {
      return fold_two<T, 1>(s[0], s[1]);
    } else {
      const Vec<T> first = fold_two<T, 1>(s[0], s[1]);
      return fold_two<T, 2>(first, fold_two<T, 1>(s[2], s[3]));
    }
  }
}

// Values of the cells of a row from t on, of which n are meant. The others are whatever comes after them.
template <class T, class I>
UNSEEN_INLINE Vec<T> cell_values(const RowSystem<T, I>& row, const CellValues<T>& values, Size t, Size n) {
  if (values.step == 0) return broadcast(*values.data);
  if (t + lanes<T> <= row.readable) return load(values.data + t);
  Vec<T> out = zero<T>();
  for (Size r = 0; r < n; ++r) out[r] = values.data[t + r];
  return out;
}

template <class T, int... At>
UNSEEN_INLINE Vec<T> counting(Places<At...>) {
  return Vec<T>{T(At)...};
}

// The first n lanes, and zero in the others.
template <class T>
UNSEEN_INLINE Vec<T> first_lanes(Vec<T> v, Size n) {
  return counting<T>(typename PlacesTo<lanes<T>>::type()) < broadcast(T(n)) ? v : zero<T>();
}

// sums[S][V] is where y comes together: with few vectors in a row more than one, so that no sum waits for the
// one before.
template <int V>
inline constexpr int n_sums = V == 0 || V > 4 ? 1
                              : V > 2         ? 2
                                              : 4;

template <int V, class T>
struct RowSums {
  Vec<T> at[n_sums<V>][V > 0 ? V : 1];
};

// N cells from t on, of which n are there: weights from their scores, and y += sum_t w_t q_t.
template <int V, int N, bool residual, bool whole, class T, class I>
UNSEEN_INLINE void add_block(const RowSystem<T, I>& row, const RowVector<V, T>& x, T* y, Size t, Size n,
                             T* kept, RowSums<V, T>& sums) {
  const Size n_vectors = V > 0 ? V : row.width / lanes<T>;
  I ids[N];  // the last cell stands in for those that are not there
#pragma GCC unroll 16
  for (int r = 0; r < N; ++r) ids[r] = row.indices[whole ? t + r : t + smaller<Size>(r, n - 1)];
  const auto factor = [&](int r) __attribute__((always_inline)) {
    return row.table + Size(ids[r]) * (n_vectors * lanes<T>);
  };
  Vec<T> s = scores_of<V, N, 0>(factor, x, n_vectors);
  s = whole_sums<T, N>(s);
  store(kept + t, s);
  const Vec<T> c = cell_values(row, row.curvature, t, n);
  Vec<T> w;
  if constexpr (residual) {
    if (row.shift) {
      for (Size r = 0; r < n; ++r) s[r] += row.shift[row.indices[t + r]];
    }
    w = cell_values(row, row.linear, t, n) - c * s;
  } else {
    w = c * s;
  }
  T weights[lanes<T>];
  store(weights, whole ? w : first_lanes<T>(w, n));
  // Without this the compiler keeps the factors of the first half in registers that it does not have.
  asm volatile("" ::: "memory");
  if constexpr (V > 0) {
#pragma GCC unroll 16
    for (int r = 0; r < N; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sums.at[r % n_sums<V>][v] += weights[r] * load(factor(r) + v * lanes<T>);
    }
  } else {
    for (Size v = 0; v < n_vectors; ++v) {
      Vec<T> yv = load(y + v * lanes<T>);
#pragma GCC unroll 16
      for (int r = 0; r < N; ++r) yv += weights[r] * load(factor(r) + v * lanes<T>);
      store(y + v * lanes<T>, yv);
    }
  }
}

// y += sum_t w_t q_t, where w_t = c_t (q_t . x), or l_t - c_t (q_t . x + shift_t) for the residual; keeps the
// scores q_t . x. V vectors a row, known to the compiler; 0 when there are too many for the registers.
// This is pass `pass` of `n_passes` over the row.
template <int V, bool residual, class T, class I>
UNSEEN_INLINE void add_cells(const RowSystem<T, I>& row, const T* x, T* y, T* kept, Size pass,
                             Size n_passes) {
  constexpr int block = lanes<T>;
  const double pace = 1.0 / double(n_passes);
  const RowVector<V, T> xs(x);
  const bool at_once = row.n_cells <= cells_lead;
  if (at_once && pass == 0) row.fetcher->up_to(row.start + row.n_cells + cells_lead);
  const bool far = row.n_cells * row.width * Size(sizeof(T)) > bytes_near;
  for (Size begin = 0; begin < row.n_cells; begin += cells_a_flush) {
    const Size end = smaller(begin + cells_a_flush, row.n_cells);
    RowSums<V, T> sums{};
    Size t = begin;
    const auto fetch = [&] {
      if (at_once) return;
      const Size paced = Size(double(pass * row.n_cells + t) * pace) + cells_lead;
      row.fetcher->up_to(row.start + (residual ? larger(paced, t + cells_ahead) : paced));
      if (!residual && far) {
        const Size stop = smaller(t + near_ahead + 2 * block, row.n_cells);
        for (Size own = t + near_ahead + block; own < stop; ++own) prefetch_row(row.factor(own), row.width);
      }
    };
    for (; t + block <= end; t += block) {
      fetch();
      add_block<V, block, residual, true>(row, xs, y, t, block, kept, sums);
    }
    if constexpr (block > 8) {
      if (t + 8 <= end) {
        fetch();
        add_block<V, 8, residual, true>(row, xs, y, t, 8, kept, sums);
        t += 8;
      }
    }
    if constexpr (block > 4) {
      if (t + 4 <= end) {
        fetch();
        add_block<V, 4, residual, true>(row, xs, y, t, 4, kept, sums);
        t += 4;
      }
    }
    if (t < end) {
      fetch();
      add_block<V, leaf_cells<T>, residual, false>(row, xs, y, t, end - t, kept, sums);
    }
    if constexpr (V > 0) {
      for (int v = 0; v < V; ++v) {
        Vec<T> all = sums.at[0][v];
        for (int a = 1; a < n_sums<V>; ++a) all += sums.at[a][v];
        store(y + v * lanes<T>, load(y + v * lanes<T>) + all);
      }
    }
  }
}

// Lanes of vectors, added up in double.
template <class T>
struct WideSums {
  using Half = typename VectorType<double, lanes<T> / 2>::type;
  Half low{}, high{};

  template <int... At>
  UNSEEN_INLINE void add(Vec<T> v, Places<At...>) {
    constexpr int half = sizeof...(At);
    low += __builtin_convertvector(__builtin_shufflevector(v, v, At...), Half);
    high += __builtin_convertvector(__builtin_shufflevector(v, v, (half + At)...), Half);
  }
  UNSEEN_INLINE void operator+=(Vec<T> v) { add(v, typename PlacesTo<lanes<T> / 2>::type()); }
  UNSEEN_INLINE double total() const {
    double sum = 0;
    for (int i = 0; i < lanes<T> / 2; ++i) sum += low[i] + high[i];
    return sum;
  }
};

// As row_value(), from scores that are known.
template <class T, class I>
double row_value_of(const RowSystem<T, I>& row, const T* x, const T* scores) {
  WideSums<T> sums;
  for (Size at = 0; at < row.width; at += lanes<T>) {  // beyond the rank x is zero
    Vec<T> part = T(0.5) * load(row.diagonal + at) * load(x + at);
    if (row.offset) part -= load(row.offset + at);
    sums += part * load(x + at);
  }
  for (Size t = 0; t < row.n_cells; t += lanes<T>) {
    const Size n = smaller<Size>(row.n_cells - t, lanes<T>);
    Vec<T> s = load(scores + t);
    if (row.shift) {
      for (Size r = 0; r < n; ++r) s[r] += row.shift[row.indices[t + r]];
    }
    Vec<T> part =
        (T(0.5) * cell_values(row, row.curvature, t, n) * s - cell_values(row, row.linear, t, n)) * s;
    sums += first_lanes<T>(part, n);
  }
  return sums.total();
}

// Conjugate gradient from the incoming x, preconditioned by the diagonal; scores end as those of x.
// scratch: 4 * width. False when the matrix shows itself not to be positive definite.
template <int V, class T, class I>
bool conjugate_gradient(const RowSystem<T, I>& row, const T* preconditioner, Size steps, T* x,
                        const Scores<T>& scores, T* scratch) {
  const Size width = V > 0 ? V * lanes<T> : row.width;
  T *r = scratch, *p = r + width, *image = p + width;
  const T* d = row.diagonal;
  for (Size at = 0; at < width; at += lanes<T>) {
    const Vec<T> own = load(d + at) * load(x + at);
    store(r + at, row.offset ? load(row.offset + at) - own : -own);
  }
  add_cells<V, true>(row, x, r, scores.reached, 0, steps + 1);
  Vec<T> sums = zero<T>();
  for (Size at = 0; at < width; at += lanes<T>) {
    const Vec<T> scaled = load(preconditioner + at) * load(r + at);
    store(p + at, scaled);
    sums += scaled * load(r + at);
  }
  T size = sum<T>(sums);
  for (Size step = 0; step < steps; ++step) {
    if (!(size > T(__FLT_MIN__))) return size == size;
    for (Size at = 0; at < width; at += lanes<T>) store(image + at, load(d + at) * load(p + at));
    add_cells<V, false>(row, p, image, scores.along, step + 1, steps + 1);
    const T bend = dot(p, image, width);
    if (!(bend > 0)) return false;
    const T length = size / bend;
    sums = zero<T>();
    for (Size at = 0; at < width; at += lanes<T>) {
      store(x + at, load(x + at) + length * load(p + at));
      const Vec<T> left = load(r + at) - length * load(image + at);
      store(r + at, left);
      sums += left * left * load(preconditioner + at);
    }
    for (Size t = 0; t < row.n_cells; t += lanes<T>) {
      store(scores.reached + t, load(scores.reached + t) + length * load(scores.along + t));
    }
    const T before = size;
    size = sum<T>(sums);
    for (Size at = 0; at < width; at += lanes<T>) {
      store(p + at, load(preconditioner + at) * load(r + at) + (size / before) * load(p + at));
    }
  }
  return true;
}

}  // namespace unseen::UNSEEN_ISA
