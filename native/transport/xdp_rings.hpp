// The rings that an AF_XDP socket shares with the kernel (Documentation/networking/af_xdp.rst): one end produces, the
// other consumes, each has an index that only it moves.
#pragma once

#include <linux/if_xdp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/mapping.hpp"
#include "base/socket.hpp"

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

namespace fabricbench {

/// The four kinds: of memory given to the kernel and back, of frames that came and that are to go.
enum class XdpRing { fill, completion, receive, send };

/// What both ends of a ring have in common.
template <class Entry>
class MappedXdpRing {
 public:
  /// Asks for the ring, of a power of two entries, and maps it; before the socket is bound.
  MappedXdpRing(const Descriptor& socket, XdpRing kind, std::uint32_t entries);
  MappedXdpRing() = default;

 protected:
  /// On the page that the kernel writes as well.
  std::uint32_t theirs() const { return __atomic_load_n(theirs_, __ATOMIC_ACQUIRE); }
  void publish(std::uint32_t own) { __atomic_store_n(ours_, own, __ATOMIC_RELEASE); }
  Entry& at(std::uint32_t number) { return entries_[number & (size_ - 1)]; }
  std::uint32_t size() const { return size_; }

 private:
  Mapping memory_;
  std::uint32_t* ours_ = nullptr;
  const std::uint32_t* theirs_ = nullptr;
  Entry* entries_ = nullptr;
  std::uint32_t size_ = 0;
};

/// A ring that we fill.
template <class Entry>
class XdpProducer : public MappedXdpRing<Entry> {
 public:
  using MappedXdpRing<Entry>::MappedXdpRing;

  /// False where it is full.
  bool push(const Entry& entry) {
    if (made_ - taken_ == this->size()) {
      taken_ = this->theirs();
      if (made_ - taken_ == this->size()) return false;
    }
    this->at(made_) = entry;
    this->publish(++made_);
    return true;
  }
  /// Whether the kernel has taken everything.
  bool is_empty() {
    taken_ = this->theirs();
    return taken_ == made_;
  }
  /// Call `tell(entry)` for what the kernel has not taken and, the socket being closed, will not.
  template <class Tell>
  void take_back(Tell tell) {
    for (taken_ = this->theirs(); taken_ != made_; ++taken_) tell(this->at(taken_));
  }

 private:
  std::uint32_t made_ = 0;
  std::uint32_t taken_ = 0;  // as we last looked
};

/// A ring that the kernel fills.
template <class Entry>
class XdpConsumer : public MappedXdpRing<Entry> {
 public:
  using MappedXdpRing<Entry>::MappedXdpRing;

  /// False where it is empty.
  bool pop(Entry& entry) {
    if (made_ == taken_) {
      made_ = this->theirs();
      if (made_ == taken_) return false;
    }
    entry = this->at(taken_);
    this->publish(++taken_);
    return true;
  }

 private:
  std::uint32_t made_ = 0;  // as we last looked
  std::uint32_t taken_ = 0;
};

extern template class MappedXdpRing<std::uint64_t>;
extern template class MappedXdpRing<xdp_desc>;

}  // namespace fabricbench
