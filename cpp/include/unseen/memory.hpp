// Aligned scratch memory that is freed with its owner.
#pragma once

#include <cstdint>
#include <cstdlib>
#if defined(_MSC_VER)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "unseen/simd.hpp"

namespace unseen::UNSEEN_ISA {

template <class T>
class Buffer {
 public:
  explicit Buffer(Size count) : count_(count) {
    const Size bytes = round_up(larger<Size>(count, 1) * Size(sizeof(T)), 64);
#if defined(__linux__)
    // Random access to a large table is slow mostly because of small pages. Straight from the system, because
    // an allocator would keep what a thread of a kernel has given back.
    constexpr Size huge_page = Size(1) << 21;
    if (bytes >= huge_page / 2) {
      mapped_ = round_up(bytes, huge_page) + huge_page;
      void* found = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (found == MAP_FAILED) return;
      base_ = found;
      const Size address = Size(reinterpret_cast<std::uintptr_t>(found));
      data_ = reinterpret_cast<T*>(round_up(address, huge_page));
      if (bytes >= 2 * huge_page) madvise(data_, mapped_ - huge_page, MADV_HUGEPAGE);
      return;
    }
#endif
#if defined(_MSC_VER)
    base_ = _aligned_malloc(size_t(bytes), 64);
#else
    base_ = std::aligned_alloc(64, bytes);
#endif
    data_ = static_cast<T*>(base_);
  }
  ~Buffer() {
#if defined(__linux__)
    if (mapped_ && base_) {
      munmap(base_, mapped_);
      return;
    }
#endif
#if defined(_MSC_VER)
    _aligned_free(base_);
#else
    std::free(base_);
#endif
  }
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
  T* data_ = nullptr;
  void* base_ = nullptr;  // what is given back: data_ may begin a little later
  Size count_, mapped_ = 0;
};

}  // namespace unseen::UNSEEN_ISA
