// Memory for messages, lent by the device that will move them (transport/device.hpp): page-aligned, and touched when it
// is lent so that no page fault falls into a timed section. It goes back when nobody holds it any more: the pattern
// that asked for it, and what still reads or writes it when the pattern is over (core/set_aside.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "base/vocabulary.hpp"

namespace fabricbench {

/// What kind of memory a message lies in, which a cell asks for by its parameter `memory`. That of an accelerator is
/// lent by devices whose adapter can reach it; none here can yet, and refuses it.
enum class MemoryKind { plain, huge, cuda, rocm };
template <>
inline constexpr std::array<std::string_view, 4> names_of<MemoryKind>{"plain", "huge", "cuda", "rocm"};

class MessageBuffer {
 public:
  /// Plain memory of this process, which devices lend that need no other.
  explicit MessageBuffer(std::size_t bytes) : bytes_(bytes) {
    constexpr std::size_t page = 4096;
    const std::size_t whole_pages = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, whole_pages)), std::free);
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 0, whole_pages);
  }
  /// Memory that a device lends; the deleter gives it back, and holds what the memory needs of the device until then.
  /// @param huge_bytes of it lie in huge pages
  MessageBuffer(std::shared_ptr<std::byte> lent, std::size_t bytes, std::size_t huge_bytes = 0)
      : memory_(std::move(lent)), bytes_(bytes), huge_bytes_(huge_bytes) {}
  MessageBuffer(MessageBuffer&&) = default;
  MessageBuffer& operator=(MessageBuffer&&) = default;

  /// Keeps the memory as long as it lives.
  std::shared_ptr<const void> keeper() const { return memory_; }
  std::span<std::byte> span() { return {memory_.get(), bytes_}; }
  std::byte* data() { return memory_.get(); }
  std::size_t size() const { return bytes_; }
  std::size_t huge_bytes() const { return huge_bytes_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_;
  std::size_t huge_bytes_ = 0;
};

/// Memory of this process. A kind that lies elsewhere is a Failure.
MessageBuffer host_memory(std::size_t bytes, MemoryKind kind);

/// Lends so many bytes. Throws a Failure or std::bad_alloc where there are none.
using Allocate = std::function<MessageBuffer(std::size_t bytes)>;
inline MessageBuffer plain_memory(std::size_t bytes) { return MessageBuffer(bytes); }

}  // namespace fabricbench
