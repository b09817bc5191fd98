#include <nanobind/nanobind.h>

#include "dispatch.hpp"

namespace unseen::bind {

void define_sparse(nanobind::module_& m);
void define_solve(nanobind::module_& m);
void define_rank(nanobind::module_& m);
void define_embeddings(nanobind::module_& m);
void define_labels(nanobind::module_& m);

}  // namespace unseen::bind

NB_MODULE(_native, m) {
  unseen::dispatch();  // a wrong UNSEEN_ISA shows at import, not in the middle of a fit
  m.def("isa", [] { return unseen::dispatch().isa; });
  unseen::bind::define_sparse(m);
  unseen::bind::define_solve(m);
  unseen::bind::define_rank(m);
  unseen::bind::define_embeddings(m);
  unseen::bind::define_labels(m);
}
