// Factorisations of symmetric matrices: Cholesky for speed, eigenvectors where that is not enough.
#pragma once

#include "unseen/dense.hpp"

namespace unseen::UNSEEN_ISA {

// a[0..R) -= f[r][0..4) times the four rows of the panel, for the columns [from, width).
template <int R, class T>
UNSEEN_INLINE void subtract_panel(T* a, const T* panel, Size width, Size row, Size from) {
  T f[R][4];
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < 4; ++p) f[r][p] = panel[p * width + row + r];
  }
  for (Size at = from; at < width; at += lanes<T>) {
    const Vec<T> u0 = load(panel + at), u1 = load(panel + width + at);
    const Vec<T> u2 = load(panel + 2 * width + at), u3 = load(panel + 3 * width + at);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Vec<T> left = load(a + r * width + at) - f[r][0] * u0 - f[r][1] * u1;
      store(a + r * width + at, left - f[r][2] * u2 - f[r][3] * u3);
    }
  }
}

// Upper factor U with U'U = a, in place on the part j >= i of the first n rows; n is a multiple of 4 and
// width of the vector. inverse receives 1 / U_ii. False when a pivot is not above the tolerance.
template <class T>
bool cholesky(T* a, Size n, Size width, T* inverse) {
  T largest = 0;
  for (Size i = 0; i < n; ++i) largest = larger(largest, a[i * width + i]);
  const T tolerance = largest * epsilon<T>() * T(n);
  for (Size first = 0; first < n; first += 4) {
    for (Size j = first; j < first + 4; ++j) {
      T* row = a + j * width;
      if (!(row[j] > tolerance)) return false;
      inverse[j] = T(1) / square_root(row[j]);
      const Vec<T> scale = broadcast(inverse[j]);
      for (Size at = j / lanes<T> * lanes<T>; at < width; at += lanes<T>)
        store(row + at, scale * load(row + at));
      for (Size i = j + 1; i < first + 4; ++i) {
        const Vec<T> factor = broadcast(row[i]);
        for (Size at = i / lanes<T> * lanes<T>; at < width; at += lanes<T>) {
          store(a + i * width + at, load(a + i * width + at) - factor * load(row + at));
        }
      }
    }
    for (Size i = first + 4; i < n; i += 4) {
      subtract_panel<4>(a + i * width, a + first * width, width, i, i / lanes<T> * lanes<T>);
    }
  }
  return true;
}

// Solve U'U x = b with the factor of cholesky(); b is used up, x has room for width entries. With n normal
// numbers as noise, x is a draw with that mean and covariance (U'U)^-1.
template <class T>
void cholesky_solve(const T* u, Size n, Size width, const T* inverse, T* b, T* x, const T* noise = nullptr) {
  for (Size j = 0; j < n; ++j) {
    x[j] = b[j] * inverse[j];
    const Vec<T> factor = broadcast(x[j]);
    for (Size at = (j + 1) / lanes<T> * lanes<T>; at < width; at += lanes<T>) {
      store(b + at, load(b + at) - factor * load(u + j * width + at));
    }
  }
  for (Size j = 0; j < n; ++j) b[j] = noise ? x[j] + noise[j] : x[j];
  // Entries not yet solved are zero, so whole vectors may be used although u is valid above its diagonal
  // only.
  for (Size at = 0; at < width; at += lanes<T>) store(x + at, zero<T>());
  for (Size j = n - 1; j >= 0; --j) {
    Vec<T> dot = zero<T>();
    for (Size at = (j + 1) / lanes<T> * lanes<T>; at < width; at += lanes<T>) {
      dot += load(u + j * width + at) * load(x + at);
    }
    x[j] = (b[j] - sum<T>(dot)) * inverse[j];
  }
}

inline void rotate_rows(double* a, double* b, Size n, double c, double s) {
  for (Size l = 0; l < n; ++l) {
    const double x = a[l], y = b[l];
    a[l] = c * x + s * y;
    b[l] = c * y - s * x;
  }
}

// Reduce a symmetric matrix to tridiagonal form by reflections. On exit row l of a holds the l-th column of
// the orthogonal transformation, and (diagonal, beside) the tridiagonal matrix. work has room for n * n.
inline void tridiagonalise(double* a, Size n, double* diagonal, double* beside, double* work) {
  double* reflectors = work;  // row k: a unit vector, zero up to position k
  for (Size k = 0; k + 2 < n; ++k) {
    double* v = reflectors + k * n;
    double size = 0;
    for (Size l = 0; l < n; ++l) v[l] = l > k ? a[k * n + l] : 0;
    for (Size l = k + 1; l < n; ++l) size += v[l] * v[l];
    size = square_root(size);
    const double image = v[k + 1] > 0 ? -size : size;
    v[k + 1] -= image;
    double norm = 0;
    for (Size l = k + 1; l < n; ++l) norm += v[l] * v[l];
    diagonal[k] = a[k * n + k];
    beside[k] = image;
    if (norm == 0) continue;
    norm = 1 / square_root(norm);
    for (Size l = k + 1; l < n; ++l) v[l] *= norm;
    // Two-sided reflection a -= 2 (v w' + w v') with w = a v - (v'a v) v; row k of a is free to hold w.
    double* w = a + k * n;
    double bend = 0;
    for (Size i = k + 1; i < n; ++i) {
      double dot = 0;
#pragma omp simd reduction(+ : dot)
      for (Size l = k + 1; l < n; ++l) dot += a[i * n + l] * v[l];
      w[i] = dot;
      bend += dot * v[i];
    }
    for (Size l = k + 1; l < n; ++l) w[l] -= bend * v[l];
    for (Size i = k + 1; i < n; ++i) {
      const double vi = 2 * v[i], wi = 2 * w[i];
      for (Size l = k + 1; l < n; ++l) a[i * n + l] -= vi * w[l] + wi * v[l];
    }
  }
  for (Size k = n > 2 ? n - 2 : 0; k < n; ++k) {
    diagonal[k] = a[k * n + k];
    if (k + 1 < n) beside[k] = a[k * n + k + 1];
  }
  for (Size e = 0; e < n * n; ++e) a[e] = e % (n + 1) == 0 ? 1 : 0;
  // Rows of a = columns of H_0 H_1 ... : apply the reflections from the last to the first, each to every row.
  for (Size k = n - 3; k >= 0; --k) {
    const double* v = reflectors + k * n;
    for (Size i = k + 1; i < n; ++i) {
      double dot = 0;
#pragma omp simd reduction(+ : dot)
      for (Size l = k + 1; l < n; ++l) dot += a[i * n + l] * v[l];
      for (Size l = k + 1; l < n; ++l) a[i * n + l] -= 2 * dot * v[l];
    }
  }
}

// Eigenvalues and eigenvectors of a symmetric matrix; row l of a becomes the eigenvector of values[l].
// work has room for n * n + n.
inline void symmetric_eigen(double* a, Size n, double* values, double* work) {
  double* beside = work + n * n;
  tridiagonalise(a, n, values, beside, work);
  const auto negligible = [&](Size k) {
    return magnitude(beside[k]) <= epsilon<double>() * (magnitude(values[k]) + magnitude(values[k + 1]));
  };
  Size patience = 60 * n;  // several times what any matrix needs; only a NaN comes near
  for (Size high = n - 1; high > 0;) {
    if (negligible(high - 1)) {
      --high;
      continue;
    }
    if (--patience < 0) return;
    Size low = high - 1;
    while (low > 0 && !negligible(low - 1)) --low;
    // One implicitly shifted QR step on the block [low, high]; the shift is the eigenvalue of the last
    // 2 x 2 block that is nearer to its corner.
    const double half = (values[high - 1] - values[high]) / 2, b = beside[high - 1];
    const double root = square_root(half * half + b * b);
    const double shift = values[high] - b * b / (half + (half < 0 ? -root : root));
    double x = values[low] - shift, bulge = beside[low];
    for (Size k = low; k < high; ++k) {
      const double r = square_root(x * x + bulge * bulge);
      const double c = r > 0 ? x / r : 1, s = r > 0 ? bulge / r : 0;
      if (k > low) beside[k - 1] = r;
      const double p = values[k], q = values[k + 1], e = beside[k];
      values[k] = c * c * p + 2 * c * s * e + s * s * q;
      values[k + 1] = s * s * p - 2 * c * s * e + c * c * q;
      beside[k] = (c * c - s * s) * e + c * s * (q - p);
      if (k + 1 < high) {
        x = beside[k];
        bulge = s * beside[k + 1];
        beside[k + 1] *= c;
      }
      rotate_rows(a + k * n, a + (k + 1) * n, n, c, s);
    }
  }
}

}  // namespace unseen::UNSEEN_ISA
