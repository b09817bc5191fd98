// All kernels, compiled once for each instruction set.
#include "unseen/als.hpp"
#include "unseen/ccd.hpp"
#include "unseen/cooccurrence.hpp"
#include "unseen/draws.hpp"
#include "unseen/joint.hpp"
#include "unseen/label_split.hpp"
#include "unseen/linear_dual.hpp"
#include "unseen/margin_dual.hpp"
#include "unseen/sgns.hpp"
#include "unseen/sparse.hpp"
#include "unseen/topk.hpp"

namespace unseen::UNSEEN_ISA {

namespace {

template <class T, class I>
constexpr Kernels<T, I> kernels() {
  return {sddmm<T, I>,    spmm<T, I>, spmm_t<T, I>, als_solve<T, I>, als_draw<T, I>, normals<T>, signs<T, I>,
          ccd_sweep<T, I>, topk<T, I>, gram<T>,      cooccurrence<I>, sgns<T, I>,     joint<T, I>,
          label_splits<T, I>, linear_duals<T, I>, margin_sweep<T, I>};
}

}  // namespace

extern const Table table{kernels<float, std::int32_t>(), kernels<float, std::int64_t>(),
                         kernels<double, std::int32_t>(), kernels<double, std::int64_t>()};

}  // namespace unseen::UNSEEN_ISA
