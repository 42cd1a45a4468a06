#include "switch/forwarder.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace fabricbench::emulated_switch {
namespace {

constexpr std::int64_t kEthernetHeaderBytes = 14;

/// How long the loop looks for frames after the last before it sleeps. A frame that finds the switch asleep is 12 to 20
/// us late (measured with pauses of 0.6 to 3 ms), so this outlasts the turn of a ping-pong between nodes that block (50
/// to 300 us).
constexpr std::int64_t kLingerNs = 500'000;

/// How often the distance of the two clocks is looked at, to notice that somebody has set the clock.
constexpr std::int64_t kOffsetPeriodNs = 100'000'000;

/// The memory of all rings together; a ring takes its share, within bounds.
constexpr std::int64_t kAllRingsBytes = 96LL << 20;
constexpr std::int64_t kSmallestRingBytes = 2LL << 20;
constexpr std::int64_t kLargestRingBytes = 16LL << 20;

}  // namespace

Forwarder::Forwarder(const Config& config, Statistics& statistics)
    : statistics_(statistics), loop_(config, statistics, open_ports(config)) {
  for (const PortConfig& port : config.ports) interfaces_.push_back(port.interface);
}

std::vector<Forwarder::Loop::Ends> Forwarder::open_ports(const Config& config) {
  const std::int64_t ring_bytes = std::clamp(kAllRingsBytes / static_cast<std::int64_t>(config.ports.size()),
                                             kSmallestRingBytes, kLargestRingBytes);
  std::vector<Loop::Ends> ends;
  for (const PortConfig& port : config.ports) {
    ends.push_back(
        {ReceiveRing(port.interface, config.mtu + kEthernetHeaderBytes, ring_bytes), Sender(port.interface)});
  }
  return ends;
}

void Forwarder::run(const std::atomic<bool>& stop, int wake_fd) noexcept {
  std::int64_t last_active_ns = 0;
  std::int64_t offset_measured_ns = 0;
  loop_.set_stamp_offset_ns(measure_realtime_offset_ns());
  while (!stop.load(std::memory_order_relaxed)) {
    const bool is_active = loop_.turn();
    const std::int64_t now_ns = loop_.now_ns();
    if (is_active) {
      last_active_ns = now_ns;
    } else if (now_ns - last_active_ns > kLingerNs) {
      sleep(wake_fd);
      last_active_ns = read_clock_ns(CLOCK_MONOTONIC);
      offset_measured_ns = 0;
    }
    if (now_ns - offset_measured_ns > kOffsetPeriodNs) {
      loop_.set_stamp_offset_ns(measure_realtime_offset_ns());
      offset_measured_ns = now_ns;
    }
    if (!has_warned_ && loop_.port_without_checksums()) warn_of_missing_checksums(*loop_.port_without_checksums());
  }
}

void Forwarder::sleep(int wake_fd) {
  std::vector<pollfd> polled{{wake_fd, POLLIN, 0}};
  for (std::size_t i = 0; i < loop_.ports(); ++i) polled.push_back({loop_.ring(i).fd(), POLLIN, 0});
  statistics_.is_busy.store(false, std::memory_order_relaxed);
  poll(polled.data(), polled.size(), -1);
  statistics_.is_busy.store(true, std::memory_order_relaxed);
  for (const pollfd& one : polled) {
    if ((one.revents & POLLERR) == 0) continue;
    // The interface went down: reading the error clears it, else poll() would return at once for ever. Up again, it
    // works again.
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(one.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
}

void Forwarder::warn_of_missing_checksums(std::size_t port) {
  has_warned_ = true;
  std::fprintf(stderr,
               "fabricbench-switch: frames arrive at %s without checksums and will be discarded by their receivers; "
               "turn the nodes' offloads off (ethtool -K IF tx off tso off gso off)\n",
               interfaces_[port].c_str());
}

}  // namespace fabricbench::emulated_switch
