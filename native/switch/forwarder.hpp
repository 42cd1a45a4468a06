// The forwarding loop over real ports: opens rings and sockets, turns (forwarding_loop.hpp) while there is traffic, as
// a wake-up costs more than many links' whole delay, and sleeps in poll() after a lull.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "switch/config.hpp"
#include "switch/forwarding_loop.hpp"
#include "switch/packet_sockets.hpp"
#include "switch/statistics.hpp"

namespace fabricbench::emulated_switch {

class Forwarder {
 public:
  /// Opens the rings and sockets of all ports; Failure where one cannot be had.
  Forwarder(const Config& config, Statistics& statistics);

  /// Forwards until `stop` is set; writing to the eventfd `wake_fd` gets it out of its sleep to look.
  void run(const std::atomic<bool>& stop, int wake_fd) noexcept;

  /// Frames that the kernel dropped at the port's full ring since the last call. May be called beside run().
  std::uint64_t take_lost_frames(std::size_t port) { return loop_.ring(port).take_lost_frames(); }

 private:
  struct MonotonicClock {
    [[nodiscard]] std::int64_t now_ns() const { return read_clock_ns(CLOCK_MONOTONIC); }
  };
  using Loop = ForwardingLoop<ReceiveRing, Sender, MonotonicClock>;

  static std::vector<Loop::Ends> open_ports(const Config& config);
  void sleep(int wake_fd);
  void warn_of_missing_checksums(std::size_t port);

  Statistics& statistics_;
  Loop loop_;
  std::vector<std::string> interfaces_;
  bool has_warned_ = false;
};

}  // namespace fabricbench::emulated_switch
