// Aligned scratch memory that is freed with its owner.
#pragma once

#include <cstdlib>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "unseen/simd.hpp"

namespace unseen::UNSEEN_ISA {

template <class T>
class Buffer {
 public:
  explicit Buffer(Size count) : count_(count) {
    // Random access to a large table is slow mostly because of small pages.
    constexpr Size huge_page = Size(1) << 21;
    const Size bytes = round_up(larger<Size>(count, 1) * Size(sizeof(T)), 64);
    const bool large = bytes >= 2 * huge_page;
    const Size rounded = large ? round_up(bytes, huge_page) : bytes;
    data_ = static_cast<T*>(std::aligned_alloc(large ? huge_page : 64, rounded));
#if defined(__linux__)
    if (large && data_) madvise(data_, rounded, MADV_HUGEPAGE);
#endif
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  explicit operator bool() const { return data_ != nullptr; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](Size i) { return data_[i]; }
  const T& operator[](Size i) const { return data_[i]; }
  void fill(T value) {
    for (Size i = 0; i < count_; ++i) data_[i] = value;
  }

 private:
  T* data_;
  Size count_;
};

}  // namespace unseen::UNSEEN_ISA
