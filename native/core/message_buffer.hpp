// Page-aligned memory for messages, touched when it is made so that no page fault falls into a timed section.
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
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, whole_pages)));
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 0, whole_pages);
  }

  std::span<std::byte> span() { return {memory_.get(), bytes_}; }
  std::byte* data() { return memory_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_;
};

}  // namespace fabricbench
