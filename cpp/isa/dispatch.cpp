#include "dispatch.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace unseen {

namespace baseline {
extern const Table table;
}
#if defined(UNSEEN_X86)
namespace avx2 {
extern const Table table;
}
namespace avx512 {
extern const Table table;
}
#endif

namespace {

struct Candidate {
  Dispatch dispatch;
  bool supported;
};

Dispatch choose() {
#if defined(UNSEEN_X86)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl");
#endif
  const Candidate candidates[] = {
#if defined(UNSEEN_X86)
      {{"avx512", &avx512::table}, has_avx512},
      {{"avx2", &avx2::table}, has_avx2},
#endif
      {{"baseline", &baseline::table}, true},
  };
  const char* wanted = std::getenv("UNSEEN_ISA");
  for (const Candidate& candidate : candidates) {
    if (wanted && *wanted && std::string(wanted) != candidate.dispatch.isa) continue;
    if (candidate.supported) return candidate.dispatch;
  }
  throw std::runtime_error("UNSEEN_ISA=" + std::string(wanted) +
                           " is not an instruction set that this build and this machine have");
}

}  // namespace

const Dispatch& dispatch() {
  static const Dispatch chosen = choose();
  return chosen;
}

}  // namespace unseen
