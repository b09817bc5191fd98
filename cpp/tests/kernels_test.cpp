// Native test under sanitisers: every kernel on awkward shapes, so that a read or write outside its memory
// shows. Results are compared with plain loops. Prints nothing and returns 0 when all is well.
//
// Compiled by tests/kernels/test_kernels_native.py for whatever instruction set the compiler is told to use.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "unseen/als.hpp"
#include "unseen/ccd.hpp"
#include "unseen/cooccurrence.hpp"
#include "unseen/draws.hpp"
#include "unseen/joint.hpp"
#include "unseen/sgns.hpp"
#include "unseen/sparse.hpp"
#include "unseen/topk.hpp"

namespace {

using unseen::Size;

int failures = 0;

void expect_near(double found, double expected, double tolerance, const char* what) {
  if (std::abs(found - expected) <= tolerance * (1 + std::abs(expected))) return;
  if (failures++ < 10) std::fprintf(stderr, "%s: found %g, expected %g\n", what, found, expected);
}

// Random matrix with an empty first row. Vectors have exactly the size needed: one step too far is an error.
template <class T, class I>
struct Problem {
  Size n, m, rank;
  std::vector<I> indptr{0}, indices, csc_indptr, csc_indices, csc_order;
  std::vector<T> values, left, right;

  Problem(Size n, Size m, Size rank, double density) : n(n), m(m), rank(rank) {
    std::mt19937 random(unsigned(n * 1000 + m * 10 + rank));
    std::uniform_real_distribution<double> uniform(0.1, 1.0);
    std::vector<std::vector<std::pair<I, I>>> columns(m);
    for (Size i = 0; i < n; ++i) {
      for (Size j = 0; i > 0 && j < m; ++j) {
        if (uniform(random) > density) continue;
        columns[j].push_back({I(i), I(indices.size())});
        indices.push_back(I(j));
        values.push_back(T(uniform(random)));
      }
      indptr.push_back(I(indices.size()));
    }
    csc_indptr.push_back(0);
    for (const auto& column : columns) {
      for (const auto& [row, place] : column) csc_indices.push_back(row), csc_order.push_back(place);
      csc_indptr.push_back(I(csc_indices.size()));
    }
    for (Size e = 0; e < n * rank; ++e) left.push_back(T(uniform(random) - 0.5));
    for (Size e = 0; e < m * rank; ++e) right.push_back(T(uniform(random) - 0.5));
    for (auto* v : {&indices, &csc_indices, &csc_order}) v->shrink_to_fit();
    for (auto* v : {&values, &left, &right}) v->shrink_to_fit();
  }
  unseen::Pattern<I> cells() const { return {indptr.data(), indices.data(), n, m}; }
  unseen::Pattern<I> by_col() const { return {csc_indptr.data(), csc_indices.data(), m, n}; }
  double score(Size i, Size j) const {
    double s = 0;
    for (Size l = 0; l < rank; ++l) s += double(left[i * rank + l]) * right[j * rank + l];
    return s;
  }
};

template <class T, class I>
void test_products(const unseen::Kernels<T, I>& kernels, Problem<T, I>& p, double tolerance) {
  const Size nnz = p.indptr.back();
  std::vector<T> scores(nnz), rows(p.n * p.rank), cols(p.m * p.rank), gram(p.rank * p.rank);
  std::vector<double> expected_rows(p.n * p.rank), expected_cols(p.m * p.rank);
  kernels.sddmm(p.cells(), p.left.data(), p.right.data(), p.rank, scores.data(), 2);
  kernels.spmm(p.cells(), {p.values.data(), 1}, p.right.data(), p.rank, rows.data(), 2);
  kernels.spmm_t(p.cells(), {p.values.data(), 1}, p.left.data(), p.rank, cols.data(), 2);
  kernels.gram(p.left.data(), p.n, p.rank, gram.data(), 2);
  for (Size i = 0; i < p.n; ++i) {
    for (Size t = p.indptr[i]; t < Size(p.indptr[i + 1]); ++t) {
      const Size j = p.indices[t];
      expect_near(scores[t], p.score(i, j), tolerance, "sddmm");
      for (Size l = 0; l < p.rank; ++l) {
        expected_rows[i * p.rank + l] += double(p.values[t]) * p.right[j * p.rank + l];
        expected_cols[j * p.rank + l] += double(p.values[t]) * p.left[i * p.rank + l];
      }
    }
  }
  for (Size e = 0; e < p.n * p.rank; ++e) expect_near(rows[e], expected_rows[e], tolerance, "spmm");
  for (Size e = 0; e < p.m * p.rank; ++e) expect_near(cols[e], expected_cols[e], tolerance, "spmm_t");
  for (Size a = 0; a < p.rank; ++a) {
    for (Size b = 0; b < p.rank; ++b) {
      double s = 0;
      for (Size i = 0; i < p.n; ++i) s += double(p.left[i * p.rank + a]) * p.left[i * p.rank + b];
      expect_near(gram[a * p.rank + b], s, tolerance, "gram");
    }
  }
}

// The solution must satisfy its equations. A gram of zero, without a ridge, takes the least-squares path.
template <class T, class I>
void test_als(const unseen::Kernels<T, I>& kernels, Problem<T, I>& p, unseen::Method method, double weight,
              double tolerance) {
  const Size k = p.rank;
  std::vector<T> gram(k * k), out(p.n * k), ridge(p.n, T(0.5)), offset(k, T(0.25));
  for (Size a = 0; a < k; ++a) {
    for (Size b = 0; b < k; ++b) gram[a * k + b] = T(weight * ((a == b) + 0.1 / double(1 + a + b)));
  }
  unseen::AlsProblem<T, I> problem{};
  problem.cells = p.cells();
  problem.curvature = {p.values.data(), 1};
  const T one = 1;
  problem.linear = {&one, 0};
  problem.other = p.right.data();
  problem.gram = gram.data();
  problem.out = out.data();
  problem.rank = k;
  problem.method = method;
  problem.cg_steps = k + 20;
  const bool regular = weight > 0;
  if (regular) problem.offset = offset.data(), problem.ridge = ridge.data();
  kernels.als_solve(problem, 2);
  for (Size i = 0; i < p.n && regular; ++i) {
    std::vector<double> residual(k, 0.25);
    for (Size a = 0; a < k; ++a) {
      residual[a] -= 0.5 * out[i * k + a];
      for (Size b = 0; b < k; ++b) residual[a] -= double(gram[a * k + b]) * out[i * k + b];
    }
    for (Size t = p.indptr[i]; t < Size(p.indptr[i + 1]); ++t) {
      const T* q = p.right.data() + Size(p.indices[t]) * k;
      double s = 0;
      for (Size l = 0; l < k; ++l) s += double(q[l]) * out[i * k + l];
      for (Size l = 0; l < k; ++l) residual[l] += (1 - double(p.values[t]) * s) * q[l];
    }
    for (const double r : residual) expect_near(r, 0, tolerance, "als_solve");
  }
  for (const T x : out) expect_near(std::isfinite(x), 1, 0, "als_solve is finite");
}

// Without noise a draw is the mean: the residual of the normal equations vanishes.
template <class T, class I>
void test_draw(const unseen::Kernels<T, I>& kernels, const Problem<T, I>& p, double tolerance) {
  const Size k = p.rank;
  std::vector<T> precision(k * k, 0), noise(p.n * k), out(p.n * k), means(p.n * k);
  std::vector<double> sizes(k * (k + 1));
  for (Size l = 0; l < k; ++l) precision[l * k + l] = 2;
  kernels.normals({1, 2, 3, 4}, 5, p.n, k, noise.data(), 2);
  for (const T x : noise) expect_near(std::isfinite(x), 1, 0, "normals are finite");
  const T one = 1;
  unseen::DrawProblem<T, I> problem{
      p.cells(), {&one, 0},    {p.values.data(), 1}, p.right.data(), precision.data(), nullptr, 0,
      nullptr,   noise.data(), out.data(),           means.data(),   sizes.data(),     k};
  kernels.als_draw(problem, 2);
  for (const T x : out) expect_near(std::isfinite(x), 1, 0, "als_draw is finite");
  for (const double x : sizes) expect_near(std::isfinite(x), 1, 0, "sizes are finite");
  for (Size i = 0; i < p.n; ++i) {
    std::vector<double> residual(k);
    for (Size a = 0; a < k; ++a) residual[a] = -2.0 * means[i * k + a];
    for (Size t = p.indptr[i]; t < Size(p.indptr[i + 1]); ++t) {
      const T* q = p.right.data() + Size(p.indices[t]) * k;
      double s = 0;
      for (Size l = 0; l < k; ++l) s += double(q[l]) * means[i * k + l];
      for (Size l = 0; l < k; ++l) residual[l] += (double(p.values[t]) - s) * q[l];
    }
    for (const double r : residual) expect_near(r, 0, tolerance, "als_draw");
  }
}

template <class T, class I>
void test_ccd(const unseen::Kernels<T, I>& kernels, Problem<T, I> p, double tolerance) {
  std::vector<T> scores(p.indptr.back());
  kernels.sddmm(p.cells(), p.left.data(), p.right.data(), p.rank, scores.data(), 1);
  const T one = 1;
  unseen::CcdProblem<T, I> problem{p.cells(),
                                   p.by_col(),
                                   p.csc_order.data(),
                                   {p.values.data(), 1},
                                   {&one, 0},
                                   scores.data(),
                                   p.left.data(),
                                   p.right.data(),
                                   p.rank,
                                   0.1,
                                   0.2,
                                   0.3,
                                   0.01,
                                   -2.0,
                                   2.0,
                                   2};
  kernels.ccd_sweep(problem, 2);
  for (Size i = 0; i < p.n; ++i) {
    for (Size t = p.indptr[i]; t < Size(p.indptr[i + 1]); ++t) {
      expect_near(scores[t], p.score(i, p.indices[t]), tolerance, "ccd_sweep");
    }
  }
}

template <class T, class I>
void test_topk(const unseen::Kernels<T, I>& kernels, Problem<T, I>& p, Size k, double tolerance) {
  std::vector<std::int64_t> col_ids, ids(p.n * k);
  for (Size j = 0; j < p.m; ++j) col_ids.push_back(j);
  std::vector<T> best(p.n * k);
  unseen::TopkProblem<T, I> problem{
      p.left.data(),    p.right.data(), p.n,        p.m,        p.rank, k, p.indptr.data(),
      p.indices.data(), col_ids.data(), ids.data(), best.data()};
  kernels.topk(problem, 2);
  for (Size i = 0; i < p.n; ++i) {
    const Size n_left = p.m - (p.indptr[i + 1] - p.indptr[i]);
    for (Size c = 0; c < k; ++c) {
      const std::int64_t id = ids[i * k + c];
      expect_near(id >= 0, c < n_left, 0, "topk fills what it can");
      if (id >= 0) expect_near(best[i * k + c], p.score(i, id), tolerance, "topk");
    }
  }
}

// Neighbours by shared columns, counted again by hand; then steps that must stay finite and inside memory.
template <class T, class I>
void test_embeddings(const Problem<T, I>& p, Size k) {
  std::vector<I> ids(p.n * k);
  std::vector<std::int32_t> counts(p.n * k);
  std::vector<std::int64_t> sizes(p.n);
  for (const bool recount : {false, true}) {
    const unseen::CooccurrenceProblem<I> problem{
        p.cells(),  p.by_col(),    k,           unseen::Similarity::cosine, recount,
        ids.data(), counts.data(), sizes.data()};
    unseen::UNSEEN_ISA::cooccurrence<I>(problem, 2);
    for (Size i = 0; i < p.n; ++i) {
      for (Size c = 0; c < sizes[i]; ++c) {
        int shared = 0;
        for (Size t = p.indptr[i]; t < Size(p.indptr[i + 1]); ++t) {
          const Size j = ids[i * k + c];
          for (Size u = p.indptr[j]; u < Size(p.indptr[j + 1]); ++u) shared += p.indices[t] == p.indices[u];
        }
        expect_near(counts[i * k + c], shared, 0, "cooccurrence");
      }
    }
  }
  std::vector<T> words = p.left, contexts = p.left, squares(p.m * p.rank), reg(p.m);
  std::vector<T> regressor = p.right;
  std::vector<I> rows(p.n), others(2 * p.n);
  for (Size i = 0; i < p.n; ++i) rows[i] = I(i), others[2 * i] = 0, others[2 * i + 1] = I(p.n - 1);
  const unseen::SgnsProblem<T, I> pairs{
      words.data(), contexts.data(), p.rank, rows.data(), rows.data(), others.data(), p.n, 2, 0.1, 0.01};
  unseen::UNSEEN_ISA::sgns<T, I>(pairs, 1);
  const unseen::JointProblem<T, I> visits{p.cells(),
                                          p.values.data(),
                                          regressor.data(),
                                          squares.data(),
                                          p.rank,
                                          rows.data(),
                                          others.data(),
                                          others.data(),
                                          p.n,
                                          2,
                                          2,
                                          reg.data(),
                                          2.0,
                                          1.0,
                                          0.1,
                                          true};
  unseen::UNSEEN_ISA::joint<T, I>(visits, 1);
  for (const auto* table : {&words, &contexts, &regressor}) {
    for (const T value : *table) expect_near(std::isfinite(value), 1, 0, "steps stay finite");
  }
}

template <class T, class I>
void test_all() {
  using namespace unseen::UNSEEN_ISA;
  const unseen::Kernels<T, I> kernels{sddmm<T, I>,    spmm<T, I>, spmm_t<T, I>, als_solve<T, I>,
                                      als_draw<T, I>, normals<T>, signs<T, I>,  ccd_sweep<T, I>,
                                      topk<T, I>,     gram<T>};
  const double tolerance = sizeof(T) == 4 ? 2e-4 : 1e-9;
  for (const Size rank : {1, 17, 70}) {
    for (const auto& [n, m] : {std::pair<Size, Size>{1, 1}, {2, 70}, {60, 7}, {300, 90}}) {
      if (n == 300 && rank != 17) continue;  // more than one chunk of work
      Problem<T, I> p(n, m, rank, 0.6);
      test_products(kernels, p, tolerance);
      for (const auto method : {unseen::Method::cholesky, unseen::Method::cg}) {
        test_als(kernels, p, method, 1.0, 50 * tolerance);
        test_als(kernels, p, method, 0.0, 50 * tolerance);
      }
      test_draw(kernels, p, 50 * tolerance);
      test_ccd(kernels, p, tolerance);
      for (const Size k : {1, 5, 40}) test_topk(kernels, p, k, tolerance);
      for (const Size k : {1, 5, 40}) test_embeddings(p, k);
    }
  }
}

}  // namespace

int main() {
  test_all<float, std::int32_t>();
  test_all<double, std::int64_t>();
  return failures == 0 ? 0 : 1;
}
