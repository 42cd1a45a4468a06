// How a rank of a farm waits: asleep, shorter than the control plane where something moves, for pieces of inputs follow
// one another.
#pragma once

#include <poll.h>
#include <time.h>

#include <algorithm>

namespace fabricbench::farm {

class Waiting {
 public:
  /// Something has moved.
  void begin_again() { waited_seconds_ = 0; }

  /// Sleep, an eighth of the waiting so far; what comes on a descriptor ends it.
  void sleep(int descriptor = -1) {
    // Several pieces are on their way at a time, so that a look is never urgent; but it costs a call into MPI.
    constexpr double shortest_seconds = 100e-6;
    constexpr double longest_seconds = 2e-3;
    constexpr double share_of_waiting = 0.125;
    const double seconds = std::clamp(waited_seconds_ * share_of_waiting, shortest_seconds, longest_seconds);
    const timespec duration{0, static_cast<long>(seconds * 1e9)};
    pollfd awaited{.fd = descriptor, .events = POLLIN, .revents = 0};
    ppoll(&awaited, descriptor < 0 ? 0 : 1, &duration, nullptr);
    waited_seconds_ += seconds;
  }

 private:
  double waited_seconds_ = 0;
};

}  // namespace fabricbench::farm
