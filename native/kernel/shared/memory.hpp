// Memory that all ranks share, as a distributed shared memory keeps it, over MPI's one-sided calls: a range of bytes in
// pages, of which each has a home, a rank whose window holds it. Other ranks read through copies, a page at a time by
// MPI_Get; what they write they keep until the next barrier, and then MPI_Put takes it home, those bytes and no others,
// so that two ranks may write into one page. A barrier forgets all copies (release consistency, as in Keleher, Cox and
// Zwaenepoel, "TreadMarks", USENIX 1994, with homes as in Zhou, Iftode and Li, OSDI 1996).
//
// Between two barriers nobody reads what another rank writes, and no two write the same bytes.
//
// Over a fabric without remote access in hardware MPI serves others only from within its calls: who computes calls
// serve() often. A rank that waits for a page or at a barrier serves meanwhile.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "kernel/frame/buffer.hpp"

namespace fabricbench::shared {

/// Which rank is a page's home: each has a stretch of them, or they are dealt out in turns.
enum class Placement { stretches, turns };

/// What this rank moved.
struct Moved {
  std::int64_t pages_fetched = 0;
  std::int64_t writes = 0;  // stretches of bytes that were put
  std::int64_t bytes_put = 0;
};

class Memory {
 public:
  /// Zeroed. Collective; `page_bytes` is a power of two. Throws std::bad_alloc.
  Memory(MPI_Comm communicator, std::size_t pages_of_each, std::size_t page_bytes, Placement placement);
  /// Collective, unless an exception unwinds: other ranks would not come.
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// The bytes that begin there, to be read until the next barrier. They are in one page, or all have one home and the
  /// placement is in stretches.
  const std::byte* read(std::size_t offset, std::size_t bytes) {
    const std::size_t first = offset >> page_shift_;
    const std::size_t last = (offset + bytes - 1) >> page_shift_;
    bool is_whole = true;
    for (std::size_t page = first; page <= last; ++page) is_whole = is_whole && pages_[page] != nullptr;
    if (!is_whole) [[unlikely]] {
      fetch(first, last);
    }
    return pages_[first] + (offset & page_mask_);
  }

  /// Put bytes there, which lie in one page: at once where this is its home, elsewhere after the next barrier.
  void write(std::size_t offset, std::span<const std::byte> bytes);

  /// Whether this rank is the home of what is there; only then may it be changed in place.
  bool is_home(std::size_t offset) const { return place_of(offset >> page_shift_).home == rank_; }
  std::byte* own(std::size_t offset) { return window_memory_ + place_of(offset >> page_shift_).bytes(offset, *this); }

  /// Where the stretch of a rank begins.
  std::size_t stretch_of(int rank) const { return static_cast<std::size_t>(rank) * pages_of_each_ * (page_mask_ + 1); }

  /// Have what was written where it belongs, on all ranks, and forget what was read. Collective.
  void barrier();

  /// Let MPI answer others, unless it did within the last moments.
  void serve() {
    if (Clock::now() - served_ns_ >= serve_interval_ns) look();
  }

  /// Since it was made, or since forget_moved().
  const Moved& moved() const { return moved_; }
  void forget_moved() { moved_ = {}; }
  std::size_t page_bytes() const { return page_mask_ + 1; }
  MPI_Comm communicator() const { return communicator_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  /// How long others may wait because this rank computes: less than most messages take, and seldom enough where a look
  /// that finds nothing gives the processor away (native/yield).
  static constexpr std::uint64_t serve_interval_ns = 100'000;

  struct Place {
    int home;
    std::size_t page;  // in the window of its home
    std::size_t bytes(std::size_t offset, const Memory& memory) const {
      return (page << memory.page_shift_) + (offset & memory.page_mask_);
    }
  };
  Place place_of(std::size_t page) const {
    const auto ranks = static_cast<std::size_t>(ranks_);
    if (placement_ == Placement::turns) return {static_cast<int>(page % ranks), page / ranks};
    return {static_cast<int>(page / pages_of_each_), page % pages_of_each_};
  }

  struct Change {
    std::size_t offset;
    std::size_t bytes;
  };

  void fetch(std::size_t first, std::size_t last);
  void put_changes();
  void look();

  MPI_Comm communicator_;
  int rank_ = 0;
  int ranks_ = 1;
  std::size_t pages_of_each_;
  unsigned page_shift_;
  std::size_t page_mask_;
  Placement placement_;
  int exceptions_;                       // that unwound when this was made
  kernel::Buffer<std::byte> copies_;     // of others' pages, each at its own offset
  std::vector<const std::byte*> pages_;  // where each can be read; null: not before it is fetched
  std::vector<std::size_t> fetched_;
  std::vector<Change> changes_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* window_memory_ = nullptr;
  std::uint64_t served_ns_ = 0;
  Moved moved_;
};

/// A number on each rank, from which all ranks take.
class Counters {
 public:
  /// All 0. Collective.
  explicit Counters(MPI_Comm communicator);
  /// Collective, unless an exception unwinds.
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  /// The number on that rank, which is one more for the next who asks.
  std::int64_t take(int home);

 private:
  int exceptions_;
  MPI_Win window_ = MPI_WIN_NULL;
};

/// A well-mixed function of a number (the finaliser of SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15U;
  number = (number ^ (number >> 30U)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27U)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31U);
}

}  // namespace fabricbench::shared
