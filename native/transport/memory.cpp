#include "transport/memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "base/failure.hpp"
#include "core/parameters.hpp"
#include "core/plan.hpp"

namespace fabricbench {
namespace {

constexpr std::size_t page_bytes = 4096;

/// Tell the compiler that the memory is read and written elsewhere, so that no repetition is optimised away.
inline void touch_memory() { asm volatile("" ::: "memory"); }

/// Pages that nobody has touched: they will lie where they are touched first.
MessageBuffer untouched(std::size_t bytes) {
  const std::size_t whole_pages = (std::max<std::size_t>(bytes, 1) + page_bytes - 1) / page_bytes * page_bytes;
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::aligned_alloc(page_bytes, whole_pages)), std::free);
  if (!memory) throw std::bad_alloc();
  return {std::move(memory), bytes};
}

MessageBuffer array_of(std::size_t bytes, bool is_touched_later) {
  return is_touched_later ? untouched(bytes) : MessageBuffer(bytes);
}

std::vector<int> processors_for(const Sweeping& sweeping) {
  if (sweeping.threads == 1) return {};
  std::vector<int> processors = allowed_processors();
  if (sweeping.threads > processors.size()) {
    throw Failure(FailureCode::unsupported, "threads is " + std::to_string(sweeping.threads) + ", and there are " +
                                                std::to_string(processors.size()) +
                                                " processors here: set as many at most, or 0 for all");
  }
  if (sweeping.threads > 0) processors.resize(sweeping.threads);
  return processors;
}

cpu_set_t own_processors() {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof own, &own) != 0) {
    throw Failure(FailureCode::error, "cannot tell the processors of this process: " + std::string(strerror(errno)));
  }
  return own;
}

}  // namespace

std::vector<int> allowed_processors() {
  const cpu_set_t before = own_processors();
  cpu_set_t wanted;
  std::memset(&wanted, 0xff,
              sizeof wanted);  // the kernel takes those that there are, and that the control group allows
  const bool is_free = sched_setaffinity(0, sizeof wanted, &wanted) == 0;
  const cpu_set_t allowed = own_processors();
  if (is_free) sched_setaffinity(0, sizeof before, &before);
  std::vector<int> processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(static_cast<std::size_t>(processor), &allowed)) processors.push_back(processor);
  }
  return processors;
}

BoundThread::BoundThread(int processor) : before_(own_processors()) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(processor), &one);
  sched_setaffinity(0, sizeof one, &one);
}
BoundThread::~BoundThread() { sched_setaffinity(0, sizeof before_, &before_); }

Memory MemoryDevice::open(const PlanProbe& probe) const {
  if (!facts_of(probe.pattern).is_stream) return Memory(probe.message_bytes);
  return {probe.message_bytes,
          {.kernel = word_parameter<MemoryKernel>(probe, "kernel"),
           .stores = word_parameter<MemoryStores>(probe, "stores"),
           .threads = whole_parameter(probe, "threads")}};
}

Memory::Memory(std::size_t message_bytes) : first_(message_bytes), second_(message_bytes), third_(0) {}

Memory::Memory(std::size_t message_bytes, const Sweeping& sweeping)
    : sweeping_(sweeping),
      processors_(processors_for(sweeping)),
      first_(array_of(message_bytes, !processors_.empty())),
      second_(array_of(message_bytes, !processors_.empty())),
      third_(array_of(message_bytes, !processors_.empty())) {
  if (message_bytes == 0 || message_bytes % sizeof(double) != 0) {
    throw Failure(FailureCode::unsupported,
                  "a stream over memory works on arrays of doubles: message_bytes must be a multiple of 8");
  }
  if (!has_streaming_stores && sweeping.stores == MemoryStores::streaming) {
    throw Failure(FailureCode::unsupported, "this build has no streaming stores for this kind of processor");
  }
}

void Memory::there_and_back(std::size_t operations) {
  for (std::size_t i = 0; i < operations; ++i) {
    std::memcpy(second_.data(), first_.data(), first_.size());
    touch_memory();
    std::memcpy(first_.data(), second_.data(), first_.size());
    touch_memory();
  }
}

SweptArrays Memory::swept() {
  return {reinterpret_cast<double*>(first_.data()), reinterpret_cast<double*>(second_.data()),
          reinterpret_cast<double*>(third_.data()), first_.size() / sizeof(double)};
}

SweptArrays Memory::part_of(const SweptArrays& arrays, std::size_t member) const {
  constexpr std::size_t doubles_of_page = page_bytes / sizeof(double);
  const std::size_t pages = (arrays.count + doubles_of_page - 1) / doubles_of_page;
  const std::size_t first = std::min(arrays.count, pages * member / processors_.size() * doubles_of_page);
  const std::size_t last = std::min(arrays.count, pages * (member + 1) / processors_.size() * doubles_of_page);
  return arrays.part(first, last - first);
}

void Memory::touch(const SweptArrays& part) {
  for (double* const array : {part.a, part.b, part.c}) std::fill_n(array, part.count, 0.0);
}

}  // namespace fabricbench
