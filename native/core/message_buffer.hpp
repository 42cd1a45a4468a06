// Page-aligned memory for messages, touched when it is made so that no page fault falls into a timed section. It may be
// shared with what still reads or writes it when the pattern is over (core/set_aside.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace fabricbench {

class MessageBuffer {
 public:
  explicit MessageBuffer(std::size_t bytes) : bytes_(bytes) {
    constexpr std::size_t page = 4096;
    const std::size_t whole_pages = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, whole_pages)), std::free);
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 0, whole_pages);
  }
  MessageBuffer(MessageBuffer&&) = default;
  MessageBuffer& operator=(MessageBuffer&&) = default;

  /// Keeps the memory as long as it lives.
  std::shared_ptr<const void> keeper() const { return memory_; }
  std::span<std::byte> span() { return {memory_.get(), bytes_}; }
  std::byte* data() { return memory_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_;
};

}  // namespace fabricbench
