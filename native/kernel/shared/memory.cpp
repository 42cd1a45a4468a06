#include "kernel/shared/memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <new>

#include "base/failure.hpp"

namespace fabricbench::shared {
namespace {

constexpr std::size_t most_changes = 1024;  // that are kept; more are put before the barrier

/// Open a window that every rank may use until it is closed. Collective.
template <class T>
T* open_window(MPI_Comm communicator, std::size_t size, MPI_Win& window) {
  void* memory = nullptr;
  const auto bytes = static_cast<MPI_Aint>(size * sizeof(T));
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  const int error = MPI_Win_allocate(bytes, sizeof(T), MPI_INFO_NULL, communicator, &memory, &window);
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_ARE_FATAL);
  if (error != MPI_SUCCESS) throw std::bad_alloc();
  int* model = nullptr;
  int is_told = 0;
  MPI_Win_get_attr(window, MPI_WIN_MODEL, static_cast<void*>(&model), &is_told);
  if (is_told == 0 || *model != MPI_WIN_UNIFIED) {
    throw Failure(FailureCode::unsupported,
                  "this MPI keeps a copy of each window apart (MPI_WIN_SEPARATE), needed MPI_WIN_UNIFIED: run it "
                  "with another MPI");
  }
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  if (bytes > 0) std::memset(memory, 0, static_cast<std::size_t>(bytes));
  MPI_Win_sync(window);
  MPI_Barrier(communicator);
  return static_cast<T*>(memory);
}

void close_window(MPI_Win& window, int exceptions) {
  if (window == MPI_WIN_NULL || std::uncaught_exceptions() > exceptions) return;
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

}  // namespace

Memory::Memory(MPI_Comm communicator, std::size_t pages_of_each, std::size_t page_bytes, Placement placement)
    : communicator_(communicator),
      pages_of_each_(pages_of_each),
      page_shift_(static_cast<unsigned>(std::countr_zero(page_bytes))),
      page_mask_(page_bytes - 1),
      placement_(placement),
      exceptions_(std::uncaught_exceptions()) {
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &ranks_);
  const std::size_t pages = pages_of_each * static_cast<std::size_t>(ranks_);
  const std::size_t own_bytes = pages_of_each * page_bytes;
  kernel::refuse_more_than_the_machine_has(static_cast<double>(own_bytes) +
                                           static_cast<double>(pages) * static_cast<double>(page_bytes));
  copies_ = kernel::Buffer<std::byte>(ranks_ > 1 ? pages * page_bytes : 0);
  pages_.resize(pages);
  fetched_.reserve(pages);
  changes_.reserve(most_changes);
  window_memory_ = open_window<std::byte>(communicator, own_bytes, window_);
  for (std::size_t page = 0; page < pages; ++page) {
    const Place place = place_of(page);
    if (place.home == rank_) pages_[page] = window_memory_ + (place.page << page_shift_);
  }
}

Memory::~Memory() { close_window(window_, exceptions_); }

/// All pages are asked for before the first is waited for.
void Memory::fetch(std::size_t first, std::size_t last) {
  const auto is_here = [&](const Change& change) {
    const std::size_t page = change.offset >> page_shift_;
    return first <= page && page <= last;
  };
  if (std::ranges::any_of(changes_, is_here)) put_changes();  // what comes would replace what this rank wrote
  const auto bytes = static_cast<int>(page_bytes());
  int home = rank_;
  for (std::size_t page = first; page <= last; ++page) {
    if (pages_[page] != nullptr) continue;
    const Place place = place_of(page);
    home = place.home;
    std::byte* const copy = copies_.data() + (page << page_shift_);
    MPI_Get(copy, bytes, MPI_BYTE, home, static_cast<MPI_Aint>(place.page << page_shift_), bytes, MPI_BYTE, window_);
    pages_[page] = copy;
    fetched_.push_back(page);
    ++moved_.pages_fetched;
  }
  MPI_Win_flush(home, window_);
  served_ns_ = Clock::now();
}

void Memory::write(std::size_t offset, std::span<const std::byte> bytes) {
  if (is_home(offset)) {
    std::memcpy(own(offset), bytes.data(), bytes.size());
    return;
  }
  std::memcpy(copies_.data() + offset, bytes.data(), bytes.size());
  if (!changes_.empty()) {
    Change& last = changes_.back();
    if (last.offset + last.bytes == offset && (last.offset >> page_shift_) == (offset >> page_shift_)) {
      last.bytes += bytes.size();
      return;
    }
  }
  if (changes_.size() == most_changes) put_changes();
  changes_.push_back({offset, bytes.size()});
}

void Memory::put_changes() {
  if (changes_.empty()) return;
  for (const Change& change : changes_) {
    const Place place = place_of(change.offset >> page_shift_);
    const auto bytes = static_cast<int>(change.bytes);
    MPI_Put(copies_.data() + change.offset, bytes, MPI_BYTE, place.home,
            static_cast<MPI_Aint>(place.bytes(change.offset, *this)), bytes, MPI_BYTE, window_);
    ++moved_.writes;
    moved_.bytes_put += bytes;
  }
  changes_.clear();
  MPI_Win_flush_all(window_);
}

void Memory::barrier() {
  put_changes();
  MPI_Win_sync(window_);
  MPI_Barrier(communicator_);
  MPI_Win_sync(window_);
  for (const std::size_t page : fetched_) pages_[page] = nullptr;
  fetched_.clear();
  served_ns_ = Clock::now();
}

void Memory::look() {
  int has_come = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &has_come, MPI_STATUS_IGNORE);
  served_ns_ = Clock::now();
}

/// Each has a cache line. With windows of 8 bytes MPICH 4.0.2 takes the counter of every second rank for that of the
/// rank before it, where ranks share memory.
Counters::Counters(MPI_Comm communicator) : exceptions_(std::uncaught_exceptions()) {
  constexpr std::size_t cache_line = 64;
  open_window<std::int64_t>(communicator, cache_line / sizeof(std::int64_t), window_);
}

Counters::~Counters() { close_window(window_, exceptions_); }

std::int64_t Counters::take(int home) {
  constexpr std::int64_t one = 1;
  std::int64_t found = 0;
  MPI_Fetch_and_op(&one, &found, MPI_INT64_T, home, 0, MPI_SUM, window_);
  MPI_Win_flush(home, window_);
  return found;
}

}  // namespace fabricbench::shared
