// Sleeps until one of many paths can go on. Edge-triggered epoll: a path is told once when it becomes ready, so nothing
// has to be asked or registered again for each sleep, and hundreds of idle paths cost nothing. Who uses it must go on
// with a path until that has nothing more, or no more room, before sleeping again.
#pragma once

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/failure.hpp"
#include "base/socket.hpp"

namespace fabricbench {

class Readiness {
 public:
  Readiness() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_.get() < 0) fail_with_errno("epoll_create1");
  }

  /// Watch a path by the number that wait() will tell. The descriptors may be the same.
  void watch(std::size_t path, int receiving, int sending) {
    if (receiving == sending) return add(receiving, path, EPOLLIN | EPOLLOUT);
    add(receiving, path, EPOLLIN);
    add(sending, path, EPOLLOUT);
  }

  /// Call `tell(path, can_receive, can_send)` for what has become ready; sleep for at most `bound_ns` if nothing has.
  /// Whether there was anything. An error counts as both, so that the next call on the path meets it.
  template <class Tell>
  bool wait(std::uint64_t bound_ns, Tell tell) {
    std::array<epoll_event, 64> events;
    const int count = wait_for_events(events, bound_ns);
    for (int i = 0; i < count; ++i) {
      const std::uint32_t what = events[static_cast<std::size_t>(i)].events;
      const bool is_broken = (what & (EPOLLERR | EPOLLHUP)) != 0;
      tell(static_cast<std::size_t>(events[static_cast<std::size_t>(i)].data.u64), is_broken || (what & EPOLLIN) != 0,
           is_broken || (what & EPOLLOUT) != 0);
    }
    return count > 0;
  }

 private:
  void add(int descriptor, std::size_t path, std::uint32_t what) {
    epoll_event event{};
    event.events = what | EPOLLET;
    event.data.u64 = path;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) fail_with_errno("epoll_ctl");
  }

  /// How many; an interrupted sleep has none. By the system call: a preloaded epoll_wait() is for MPI's own loops.
  int wait_for_events(std::array<epoll_event, 64>& events, std::uint64_t bound_ns) {
    const int most = static_cast<int>(events.size());
    const timespec bound{static_cast<time_t>(bound_ns / 1'000'000'000), static_cast<long>(bound_ns % 1'000'000'000)};
    long count = syscall(SYS_epoll_pwait2, epoll_.get(), events.data(), most, &bound, nullptr, 0);
    if (count < 0 && errno == ENOSYS) {  // kernels before 5.11 know milliseconds only
      const int bound_ms = static_cast<int>((bound_ns + 999'999) / 1'000'000);
      count = syscall(SYS_epoll_pwait, epoll_.get(), events.data(), most, bound_ms, nullptr, 0);
    }
    if (count < 0 && errno != EINTR) fail_with_errno("epoll_wait");
    return count < 0 ? 0 : static_cast<int>(count);
  }

  Descriptor epoll_;
};

}  // namespace fabricbench
