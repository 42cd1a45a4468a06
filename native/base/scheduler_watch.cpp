#include "base/scheduler_watch.hpp"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

namespace fabricbench {
namespace {

// A record of a switch has 16 bytes with its time; 64 KiB hold 2,000 switches in and out, of which a round trip has
// two.
constexpr std::size_t ring_bytes = 64 * 1024;

std::size_t mapped_bytes() { return ring_bytes + static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::string paranoid_text() {
  std::string text;
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> text;
  return text.empty() ? "unknown" : text;
}

int open_switch_records() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.context_switch = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.sample_id_all = 1;
  attributes.sample_type = PERF_SAMPLE_TIME;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_REALTIME;
  attributes.watermark = 1;
  attributes.wakeup_watermark = ring_bytes;  // nobody waits for records
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

SchedulerWatch::SchedulerWatch() : events_(open_switch_records()) {
  void* mapped = MAP_FAILED;
  if (events_.get() >= 0) {
    mapped = mmap(nullptr, mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, events_.get(), 0);
  }
  if (mapped == MAP_FAILED) {
    refused_["resumed"] = std::string(events_.get() < 0 ? "perf_event_open: " : "mmap(perf_event_open): ") +
                          std::strerror(errno) + " (kernel.perf_event_paranoid is " + paranoid_text() +
                          "; it must be 2 or less, and no security module forbid it)";
  } else {
    ring_ = static_cast<perf_event_mmap_page*>(mapped);
  }
  statistics_ = Descriptor(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  if (statistics_.get() < 0) refused_["waited"] = std::string("/proc/thread-self/schedstat: ") + std::strerror(errno);
  waited_ = read_waited();
}

SchedulerWatch::~SchedulerWatch() {
  if (ring_ != nullptr) munmap(ring_, mapped_bytes());
}

std::int64_t SchedulerWatch::take_switch_in(std::int64_t until_ns) {
  if (ring_ == nullptr) return 0;
  std::int64_t found = 0;
  std::atomic_ref<__u64> head_field(ring_->data_head);
  std::atomic_ref<__u64> tail_field(ring_->data_tail);
  const std::uint64_t head = head_field.load(std::memory_order_acquire);
  const char* const data = reinterpret_cast<const char*>(ring_) + ring_->data_offset;
  std::uint64_t at = ring_->data_tail;
  while (at < head) {
    // Records are multiples of 8 bytes and the ring is one of them, so that neither field is torn.
    perf_event_header header{};
    std::memcpy(&header, data + at % ring_->data_size, sizeof header);
    if (header.size == 0) break;
    if (header.type == PERF_RECORD_SWITCH && (header.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0) {
      std::uint64_t time_ns = 0;
      std::memcpy(&time_ns, data + (at + sizeof header) % ring_->data_size, sizeof time_ns);
      if (static_cast<std::int64_t>(time_ns) <= until_ns) found = static_cast<std::int64_t>(time_ns);
    }
    at += header.size;
  }
  tail_field.store(head, std::memory_order_release);
  return found;
}

std::int64_t SchedulerWatch::take_waited() {
  const std::int64_t before = waited_;
  waited_ = read_waited();
  return waited_ - before;
}

std::int64_t SchedulerWatch::read_waited() const {
  // Time on a processor, time runnable without one, times run.
  std::array<char, 128> text{};
  if (statistics_.get() < 0) return 0;
  const ssize_t size = pread(statistics_.get(), text.data(), text.size(), 0);
  if (size <= 0) return waited_;
  const std::string_view told(text.data(), static_cast<std::size_t>(size));
  const std::size_t second = told.find(' ') + 1;
  std::int64_t waited = waited_;
  std::from_chars(told.data() + second, told.data() + told.size(), waited);
  return waited;
}

}  // namespace fabricbench
