// The kernels for the machine that we run on.
#pragma once

#include "unseen/api.hpp"

namespace unseen {

struct Dispatch {
  const char* isa;  // "baseline", "avx2" or "avx512"
  const Table* table;
};

// Chosen on the first call. The environment variable UNSEEN_ISA asks for a lower instruction set than the
// machine has; throws std::runtime_error when it asks for one that is unknown or that the machine lacks.
const Dispatch& dispatch();

}  // namespace unseen
