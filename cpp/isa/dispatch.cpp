#include "dispatch.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#if defined(UNSEEN_X86) && defined(_MSC_VER)
#include <intrin.h>
#endif

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

#if defined(UNSEEN_X86)
struct Processor {
  bool avx2 = false, avx512 = false;

  Processor() {
#if defined(_MSC_VER)
    // The builtins below need a library of Clang's that is not linked under Windows.
    int first[4], seventh[4], highest[4];
    __cpuid(highest, 0);
    if (highest[0] < 7) return;
    __cpuid(first, 1);
    __cpuidex(seventh, 7, 0);
    const auto bit = [](int word, int place) { return ((unsigned(word) >> place) & 1u) != 0; };
    const bool fma = bit(first[2], 12), osxsave = bit(first[2], 27);
    const unsigned long long kept = osxsave ? _xgetbv(0) : 0;  // registers that the system saves
    avx2 = fma && bit(seventh[1], 5) && (kept & 0x06) == 0x06;
    avx512 = avx2 && bit(seventh[1], 16) && bit(seventh[1], 17) && bit(seventh[1], 30) &&
             bit(seventh[1], 31) && (kept & 0xe6) == 0xe6;
#else
    __builtin_cpu_init();
    avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
  }
};
#endif

Dispatch choose() {
#if defined(UNSEEN_X86)
  const Processor processor;
#endif
  const Candidate candidates[] = {
#if defined(UNSEEN_X86)
      {{"avx512", &avx512::table}, processor.avx512},
      {{"avx2", &avx2::table}, processor.avx2},
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
