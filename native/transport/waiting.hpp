// How a receiver waits for data, as a template parameter: asleep in the kernel, or spinning on a call that does not
// block. Both are bounded, and neither costs the case in which data is there anything but the call itself.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/clock.hpp"
#include "core/failure.hpp"
#include "core/vocabulary.hpp"

namespace fabricbench {

/// Call `attempt(flags)` until it returns 0 or more; -1 when `bound_ns` has passed without that. Any other error is a
/// Failure. Blocking relies on SO_RCVTIMEO for the bound.
template <Receive mode, class Attempt>
inline ssize_t wait_for(std::uint64_t bound_ns, std::string_view call, Attempt attempt) {
  if constexpr (mode == Receive::blocking) {
    for (;;) {
      const ssize_t size = attempt(0);
      if (size >= 0) [[likely]]
        return size;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return -1;
      if (errno != EINTR) fail_with_errno(call);
    }
  } else {
    // Looking at the clock now and then keeps the spin short; 64 empty calls are some 15 us.
    constexpr unsigned calls_per_look = 64;
    std::uint64_t deadline = 0;
    for (unsigned calls = 1;; ++calls) {
      const ssize_t size = attempt(MSG_DONTWAIT);
      if (size >= 0) [[likely]]
        return size;
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) [[unlikely]]
        fail_with_errno(call);
      if (calls % calls_per_look != 0) continue;
      const std::uint64_t now = KernelClock::now();
      if (deadline == 0) deadline = now + bound_ns;
      if (now > deadline) return -1;
    }
  }
}

/// Call `attempt()` until the layer has taken the message. A full queue of the interface (ENOBUFS) is waited for,
/// because that is how the kernel tells a sender of datagrams that it is faster than the line.
template <class Attempt>
inline void send_whole(std::string_view call, Attempt attempt) {
  for (;;) {
    if (attempt() >= 0) [[likely]]
      return;
    if (errno == ENOBUFS) {
      constexpr timespec until_some_frames_have_left{0, 20'000};
      nanosleep(&until_some_frames_have_left, nullptr);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      throw Failure(FailureCode::timeout, std::string(call) + " found no room in the send queue: is the link up?");
    } else if (errno != EINTR) {
      fail_with_errno(call);
    }
  }
}

inline std::uint64_t seconds_to_ns(double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }

}  // namespace fabricbench
