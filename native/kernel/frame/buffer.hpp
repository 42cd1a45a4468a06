// Memory for the large arrays of a kernel: zeroed, aligned to a cache line, and on huge pages where the system lets us,
// as kernels walk planes whose rows lie on more pages than the address cache holds.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

namespace fabricbench::kernel {

/// Throw std::bad_alloc for what no machine of this size holds, before it is asked for: systems that promise more than
/// they have would end us later.
inline void refuse_more_than_the_machine_has(double bytes) {
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > memory) throw std::bad_alloc();
}

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  /// Throws std::bad_alloc.
  explicit Buffer(std::size_t size) : size_(size) {
    constexpr std::size_t cache_line = 64;
    constexpr std::size_t huge_page = std::size_t{2} << 20U;
    const std::size_t alignment = size * sizeof(T) >= huge_page ? huge_page : cache_line;
    const std::size_t bytes = (size * sizeof(T) + alignment - 1) / alignment * alignment;
    if (bytes == 0) return;
    refuse_more_than_the_machine_has(static_cast<double>(size) * sizeof(T));
    data_.reset(static_cast<T*>(std::aligned_alloc(alignment, bytes)));
    if (!data_) throw std::bad_alloc();
    if (alignment == huge_page) madvise(data_.get(), bytes, MADV_HUGEPAGE);  // advice: refused is as good as not given
    std::memset(static_cast<void*>(data_.get()), 0, bytes);
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace fabricbench::kernel
