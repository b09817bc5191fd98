#include <nanobind/stl/string.h>

#include "arrays.hpp"

namespace unseen::bind {

using namespace nb::literals;

template <class I>
nb::object cooccurrence(In1<I> indptr, In1<I> indices, In1<I> index_indptr, In1<I> index_indices, Size k,
                        const std::string& similarity, bool recount, int n_threads) {
  require(indptr.shape(0) >= 1 && index_indptr.shape(0) >= 1, "indptr must not be empty");
  require(k >= 0, "k must not be negative");
  require(similarity == "cosine" || similarity == "share", "similarity must be 'cosine' or 'share'");
  const std::size_t n_rows = indptr.shape(0) - 1, n_labels = index_indptr.shape(0) - 1;
  CooccurrenceProblem<I> problem{};
  problem.rows = pattern(indptr, indices, n_rows, n_labels);
  problem.index = pattern(index_indptr, index_indices, n_labels, n_rows);
  problem.k = k;
  problem.similarity = similarity == "cosine" ? Similarity::cosine : Similarity::share;
  problem.recount = recount;
  auto ids = make_array<I>({n_rows, std::size_t(k)}, problem.ids);
  auto counts = make_array<std::int32_t>({n_rows, std::size_t(k)}, problem.counts);
  auto sizes = make_array<std::int64_t>({n_rows}, problem.sizes);
  if (k == 0) {
    for (std::size_t i = 0; i < n_rows; ++i) problem.sizes[i] = 0;
  }
  run(kernels<double, I>().cooccurrence, n_threads, problem);
  return nb::make_tuple(ids, counts, sizes);
}

template <class T, class I>
void sgns(InOut2<T> words, InOut2<T> contexts, In1<I> centers, In1<I> positives, In2<I> negatives,
          double first_rate, double last_rate, int n_threads) {
  const std::size_t n_pairs = centers.shape(0);
  require(words.shape(1) == contexts.shape(1), "words and contexts must have the same number of columns");
  require(positives.shape(0) == n_pairs && negatives.shape(0) == n_pairs,
          "positives and negatives must have one row a pair");
  SgnsProblem<T, I> problem{};
  problem.words = words.data();
  problem.contexts = contexts.data();
  problem.rank = Size(words.shape(1));
  problem.centers = centers.data();
  problem.positives = positives.data();
  problem.negatives = negatives.data();
  problem.n_pairs = Size(n_pairs);
  problem.n_negatives = Size(negatives.shape(1));
  problem.first_rate = first_rate;
  problem.last_rate = last_rate;
  run(kernels<T, I>().sgns, n_threads, problem);
}

template <class T, class I>
void joint(In1<I> indptr, In1<I> indices, In1<T> values, InOut2<T> regressor, InOut2<T> squares,
           In1<I> visits, In2<I> positives, In2<I> negatives, In1<T> reg, double gamma,
           double negative_weight, double rate, bool cosine, int n_threads) {
  require(indptr.shape(0) >= 1, "indptr must not be empty");
  require(values.shape(0) == indices.shape(0), "values must be one a stored cell");
  require(reg.shape(0) == regressor.shape(0), "reg must be one a feature");
  require(regressor.shape(0) == squares.shape(0) && regressor.shape(1) == squares.shape(1),
          "regressor and squares must have the same shape");
  require(positives.shape(0) == visits.shape(0) && negatives.shape(0) == visits.shape(0),
          "positives and negatives must have one row a visit");
  JointProblem<T, I> problem{};
  problem.cells = pattern(indptr, indices, indptr.shape(0) - 1, regressor.shape(0));
  problem.values = values.data();
  problem.regressor = regressor.data();
  problem.squares = squares.data();
  problem.rank = Size(regressor.shape(1));
  problem.visits = visits.data();
  problem.positives = positives.data();
  problem.negatives = negatives.data();
  problem.n_visits = Size(visits.shape(0));
  problem.n_positives = Size(positives.shape(1));
  problem.n_negatives = Size(negatives.shape(1));
  problem.gamma = gamma;
  problem.negative_weight = negative_weight;
  problem.rate = rate;
  problem.reg = reg.data();
  problem.cosine = cosine;
  run(kernels<T, I>().joint, n_threads, problem);
}

template <class I>
void define_cooccurrence(nb::module_& m) {
  m.def("cooccurrence", cooccurrence<I>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "index_indptr"_a.noconvert(), "index_indices"_a.noconvert(), "k"_a, "similarity"_a, "recount"_a,
        "n_threads"_a);
}

template <class T, class I>
struct Embeddings {
  static void define(nb::module_& m) {
    m.def("sgns", sgns<T, I>, "words"_a.noconvert(), "contexts"_a.noconvert(), "centers"_a.noconvert(),
          "positives"_a.noconvert(), "negatives"_a.noconvert(), "first_rate"_a, "last_rate"_a, "n_threads"_a);
    m.def("joint", joint<T, I>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
          "regressor"_a.noconvert(), "squares"_a.noconvert(), "visits"_a.noconvert(),
          "positives"_a.noconvert(), "negatives"_a.noconvert(), "reg"_a.noconvert(), "gamma"_a,
          "negative_weight"_a, "rate"_a, "cosine"_a, "n_threads"_a);
  }
};

void define_embeddings(nb::module_& m) {
  define_cooccurrence<std::int32_t>(m);
  define_cooccurrence<std::int64_t>(m);
  define_all<Embeddings>(m);
}

}  // namespace unseen::bind
