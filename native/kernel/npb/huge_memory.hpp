// Zeroed memory for large arrays, on huge pages where the system offers them on request: sweeps across planes touch a
// new page with each point.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace fabricbench::npb {

class HugeMemory {
 public:
  HugeMemory() = default;
  explicit HugeMemory(std::size_t doubles) {
    constexpr std::size_t line = 64;
    constexpr std::size_t huge_page = std::size_t{2} << 20U;
    const std::size_t alignment = doubles * sizeof(double) >= huge_page ? huge_page : line;
    const std::size_t bytes = (doubles * sizeof(double) + alignment) / alignment * alignment;
    memory_.reset(static_cast<double*>(std::aligned_alloc(alignment, bytes)));
    if (!memory_) throw std::bad_alloc();
    if (alignment == huge_page) ::madvise(memory_.get(), bytes, MADV_HUGEPAGE);  // a wish: nothing depends on it
    std::memset(memory_.get(), 0, bytes);
  }

  double* data() { return memory_.get(); }
  const double* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(double* memory) const { std::free(memory); }
  };
  std::unique_ptr<double, Free> memory_;
};

}  // namespace fabricbench::npb
