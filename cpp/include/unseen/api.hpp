// What the bindings and the kernels agree on. Plain data only: this header is read by code compiled for
// different instruction sets, so it must not define a single function.
#pragma once

#include <cstdint>

namespace unseen {

using Size = std::int64_t;

// Pattern of a sparse matrix, compressed by rows (or by columns, seen from the other side).
template <class I>
struct Pattern {
  const I* indptr;
  const I* indices;
  Size n_rows;
  Size n_cols;
};

// One value a stored cell, or the same value for all of them (step 0).
template <class T>
struct CellValues {
  const T* data;
  Size step;
};

enum class Method { cholesky, cg };

template <class T, class I>
struct AlsProblem {
  Pattern<I> cells;
  CellValues<T> curvature, linear;
  const T* other;
  const T* gram;
  const T* offset;      // may be null
  Size offset_step;     // 0 when all rows share one offset, else the rank
  const T* ridge;       // may be null
  const T* gram_scale;  // factor of gram in each row; may be null
  const T* shift;       // scores that are known beforehand, one a column; may be null
  T* out;
  double* row_values;  // what each row minimises, at its solution; may be null
  Size rank;
  Method method;
  Size cg_steps;
};

template <class T, class I>
struct DrawProblem {
  Pattern<I> cells;
  CellValues<T> curvature, linear;
  const T *other, *precision;
  const T* offset;   // may be null
  Size offset_step;  // from one row to the next; 0 where all rows share one
  const T* shift;    // scores that are known beforehand, one a column; may be null
  const T* noise;    // normal numbers, as many as out has
  T *out, *means;    // means may be null
  double* sizes;     // rank rows of rank + 1, or null
  Size rank;
};

// Names the numbers: the same four give the same numbers, whoever asks.
struct DrawKey {
  std::uint32_t seed_low, seed_high, sweep, block;
};

// Random signs on few of the cells 0 .. length - 1 of each row, in order. A row has room for `capacity` of
// them; `most` tells how many the fullest row has, and nothing else is of use where that is more.
template <class T, class I>
struct SignsProblem {
  DrawKey key;
  Size first_row, n_rows, length;
  double rate;
  T size;
  const I* skip;  // a cell of each row that gets none, or -1
  Size capacity;
  I *indptr, *indices;
  T* values;
  Size* most;
};

template <class T, class I>
struct CcdProblem {
  Pattern<I> by_row, by_col;
  const I* csc_order;
  CellValues<T> curvature, linear;
  T *scores, *left, *right;
  Size rank;
  double background, target, reg, l1, lower, upper;
  Size inner;
};

template <class T, class I>
struct TopkProblem {
  const T *left, *right;
  Size n_rows, n_cols, rank, k;
  const I *exclude_indptr, *exclude_indices;  // may be null
  const std::int64_t* col_ids;
  std::int64_t* ids;
  T* scores;
};

enum class Similarity { cosine, share };

template <class I>
struct CooccurrenceProblem {
  Pattern<I> rows;   // labels of each row
  Pattern<I> index;  // rows of each label, perhaps only a part of them
  Size k;
  Similarity similarity;
  bool recount;  // count shared labels again from `rows`, for when the index is not complete
  I* ids;        // n_rows x k, increasing in each row
  std::int32_t* counts;
  std::int64_t* sizes;
};

template <class T, class I>
struct SgnsProblem {
  T *words, *contexts;  // the same table when it is shared
  Size rank;
  const I *centers, *positives, *negatives;  // n_pairs, n_pairs, n_pairs x n_negatives
  Size n_pairs, n_negatives;
  double first_rate, last_rate;
};

template <class T, class I>
struct JointProblem {
  Pattern<I> cells;  // features of each row
  const T* values;
  T *regressor, *squares;  // n_features x rank
  Size rank;
  const I *visits, *positives, *negatives;  // n_visits, n_visits x n_positives, n_visits x n_negatives
  Size n_visits, n_positives, n_negatives;
  const T* reg;  // one a feature
  double gamma, negative_weight, rate;
  bool cosine;
};

template <class T, class I>
struct SplitProblem {
  Pattern<I> cells;  // features of each row
  const T* values;
  Pattern<I> gains;  // what each label of a row is worth
  const T* gain_values;
  const I *starts, *rows;  // rows of each node
  Size n_nodes;
  signed char* sides;  // 1 or -1 for each of rows; in: where to start, out: as the weights say
  T* weights;          // n_nodes x n_features
  double C, tol;
  Size max_passes, max_rounds;
};

// min over w of 1/2 |w|^2 + l1 |w|_1 + sum_i C_i loss(margin_i - sign_i w.x_i), loss the hinge or its square.
template <class T, class I>
struct DualProblem {
  Pattern<I> cells;
  const T* values;
  const I *starts, *rows;  // rows of each classifier
  Size n_problems;
  const signed char* signs;  // 1 or -1 for each of rows
  double* alpha;             // dual variables; in: where to start
  T* weights;                // n_problems x n_features
  double C_positive, C_negative, margin_positive, margin_negative, l1, tol;
  bool squared;
  Size max_passes, seed;
};

// min over W of sum_k (1/2 |w_k|^2 + l1 |w_k|_1) + sum_i C_i max(0, 1 + largest score of another label of row
// i - smallest score of a label of its own).
template <class T, class I>
struct MarginProblem {
  Pattern<I> cells;
  const T* values;
  Pattern<I> labels;  // of each row
  const I* visits;    // rows in the order in which they are visited
  Size n_visits;
  const I* slots;  // where the labels in use of each row start
  I* active;       // those of its own first, then others; -1 where there is none
  double* alpha;   // dual variables
  T* weights;      // n_features x n_labels: sums of the rows by their dual variables, before they are shrunk
  const double* costs;  // C of each row
  double* gaps;         // of each row: gap of the duality that it had when it was visited
  double l1, feature_share, label_share;
  Size n_candidates, seed;
};

// Every kernel returns false when it could not get the memory it needs, and has written nothing then.
template <class T, class I>
struct Kernels {
  bool (*sddmm)(const Pattern<I>&, const T* left, const T* right, Size rank, T* out, int n_threads);
  bool (*spmm)(const Pattern<I>&, CellValues<T>, const T* dense, Size rank, T* out, int n_threads);
  bool (*spmm_t)(const Pattern<I>&, CellValues<T>, const T* dense, Size rank, T* out, int n_threads);
  bool (*als_solve)(const AlsProblem<T, I>&, int n_threads);
  bool (*als_draw)(const DrawProblem<T, I>&, int n_threads);
  bool (*normals)(const DrawKey&, Size first_row, Size n_rows, Size n_cols, T* out, int n_threads);
  bool (*signs)(const SignsProblem<T, I>&, int n_threads);
  bool (*ccd_sweep)(const CcdProblem<T, I>&, int n_threads);
  bool (*topk)(const TopkProblem<T, I>&, int n_threads);
  bool (*gram)(const T* dense, Size n_rows, Size rank, T* out, int n_threads);
  bool (*cooccurrence)(const CooccurrenceProblem<I>&, int n_threads);
  bool (*sgns)(const SgnsProblem<T, I>&, int n_threads);
  bool (*joint)(const JointProblem<T, I>&, int n_threads);
  bool (*label_splits)(const SplitProblem<T, I>&, int n_threads);
  bool (*linear_duals)(const DualProblem<T, I>&, int n_threads);
  bool (*margin_sweep)(const MarginProblem<T, I>&, int n_threads);
};

struct Table {
  Kernels<float, std::int32_t> f32_i32;
  Kernels<float, std::int64_t> f32_i64;
  Kernels<double, std::int32_t> f64_i32;
  Kernels<double, std::int64_t> f64_i64;
};

}  // namespace unseen
