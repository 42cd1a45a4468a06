// How a receiver waits for data, as a template parameter: asleep in the kernel, or spinning on a call that does not
// block. Both are bounded, and neither costs the case in which data is there anything but the call itself. Sleeping
// calls rely on a Watchdog that interrupts them.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "base/vocabulary.hpp"
#include "core/watchdog.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

inline bool is_empty_or_full(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

/// Call `attempt(flags)` until it returns 0 or more; -1 when `bound_ns` has passed without that. Other errors are
/// Failures.
template <Receive mode, class Attempt>
inline ssize_t wait_for(std::uint64_t bound_ns, std::string_view call, Attempt attempt) {
  Patience patience;
  if constexpr (mode == Receive::blocking) {
    for (;;) {
      const ssize_t size = attempt(0);
      if (size >= 0) [[likely]]
        return size;
      if (errno != EINTR) fail_with_errno(call);
      if (patience.is_over(bound_ns)) return -1;
    }
  } else {
    // Looking at the clock now and then keeps the spin short; 64 empty calls are some 15 us.
    constexpr unsigned calls_per_look = 64;
    for (unsigned calls = 1;; ++calls) {
      const ssize_t size = attempt(MSG_DONTWAIT);
      if (size >= 0) [[likely]]
        return size;
      if (!is_empty_or_full(errno) && errno != EINTR) [[unlikely]]
        fail_with_errno(call);
      if (calls % calls_per_look == 0 && patience.is_over(bound_ns)) return -1;
    }
  }
}

/// Whether ppoll(2) has told that there is something to read; where it was interrupted or the socket has failed, errno
/// says so.
inline bool has_slept_until_readable(int descriptor) {
  pollfd wanted{descriptor, POLLIN, 0};
  if (ppoll(&wanted, 1, nullptr, nullptr) < 0) return false;  // a preloaded poll() is for MPI's own loops
  if ((wanted.revents & POLLERR) == 0) [[likely]]
    return true;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error != 0 ? error : EIO;
  return false;
}

/// As wait_for() over a ring that the kernel shares: `take()` looks into it, and gives -1 with EAGAIN where it is
/// empty.
template <Receive mode, class Take>
inline ssize_t wait_on_ring(std::uint64_t bound_ns, std::string_view call, int descriptor, Take take) {
  return wait_for<mode>(bound_ns, call, [&](int flags) {
    for (;;) {
      const ssize_t size = take();
      if (size >= 0 || flags == MSG_DONTWAIT || !has_slept_until_readable(descriptor)) return size;
    }
  });
}

/// Call `attempt()` until the layer has taken something; how much. A full queue of the interface (ENOBUFS) is waited
/// for, because that is how the kernel tells a sender of datagrams that it is faster than the line.
template <class Attempt>
inline std::size_t send_some(std::string_view call, Attempt attempt) {
  constexpr std::uint64_t bound_ns = seconds_to_ns(reliable_bound_seconds);
  Patience patience;
  for (;;) {
    const ssize_t size = attempt();
    if (size >= 0) [[likely]]
      return static_cast<std::size_t>(size);
    if (errno == ENOBUFS) {
      constexpr timespec until_some_frames_have_left{0, 20'000};
      nanosleep(&until_some_frames_have_left, nullptr);
    } else if (errno != EINTR) {
      fail_with_errno(call);
    }
    if (patience.is_over(bound_ns)) {
      throw Failure(FailureCode::timeout,
                    std::string(call) + " found no room for 10 s: is the link up, and does the peer still receive?");
    }
  }
}

/// Make one `attempt()` to send a datagram without waiting; how much was taken. `is_full` tells of a full queue of the
/// interface, for which there is no notice when it has room again.
template <class Attempt>
inline std::size_t try_send_datagram(std::string_view call, bool& is_full, Attempt attempt) {
  const ssize_t size = attempt();
  if (size >= 0) [[likely]]
    return static_cast<std::size_t>(size);
  is_full = errno == ENOBUFS;
  if (!is_full && !is_empty_or_full(errno) && errno != EINTR) fail_with_errno(call);
  return 0;
}

/// Wait for a datagram of at least `smallest` by `wait()`, which gives its size, or -1 when its bound has passed;
/// whether one has come. What is shorter was sent by strangers.
template <class Wait>
inline bool receive_datagram(std::size_t smallest, Wait wait) {
  for (;;) {
    const ssize_t size = wait();
    if (size >= static_cast<ssize_t>(smallest)) [[likely]]
      return true;
    if (size < 0) return false;
  }
}

/// Make attempts to receive without waiting until one gives a whole `smallest` or there is nothing; the size or 0. What
/// is shorter was sent by strangers.
template <class Attempt>
inline std::size_t try_receive_datagram(std::string_view call, std::size_t smallest, Attempt attempt) {
  for (;;) {
    const ssize_t size = attempt(MSG_DONTWAIT);
    if (size >= static_cast<ssize_t>(smallest)) [[likely]]
      return static_cast<std::size_t>(size);
    if (size >= 0) continue;
    if (!is_empty_or_full(errno) && errno != EINTR) fail_with_errno(call);
    return 0;
  }
}

}  // namespace fabricbench
