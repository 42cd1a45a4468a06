// Memory by whole pages (mmap(2)): shared with a socket's rings, or taken for itself. Given back when it is destroyed.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "base/failure.hpp"

namespace fabricbench {

class Mapping {
 public:
  Mapping() = default;
  /// Readable and writable. Throws the Failure of that `name`, with `advice` as in fail_with_errno().
  Mapping(std::size_t bytes, int flags, int descriptor, off_t offset, std::string_view name,
          std::string_view advice = {})
      : memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, offset)), bytes_(bytes) {
    if (memory_ == MAP_FAILED) {
      memory_ = nullptr;
      fail_with_errno("mmap(" + std::string(name) + ")", advice);
    }
  }
  Mapping(Mapping&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::size_t size() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace fabricbench
