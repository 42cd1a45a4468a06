#include "switch/forwarder.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "switch/clock.hpp"

namespace fabricbench::emulated_switch {
namespace {

constexpr std::int64_t kEthernetHeaderBytes = 14;

/// How long the loop looks for frames after the last before it sleeps. A frame that finds the switch asleep is 12 to 20
/// us late (measured with pauses of 0.6 to 3 ms), so this outlasts the turn of a ping-pong between nodes that block (50
/// to 300 us).
constexpr std::int64_t kLingerNs = 500'000;

/// What two veth crossings, into the ring and out to the node, add between the stamps at their two ends. It cannot be
/// seen from in here; with it, the median of what fabricbench-linkdelay measures is within 0.2 us of what was asked.
constexpr std::int64_t kCrossingsNs = 200;

/// A frame gets from its arrival stamp into the ring within this time, so the lookahead is shorter by it.
constexpr std::int64_t kVisibleAfterNs = 2'000;

/// How often the distance of the two clocks is looked at, to notice that somebody has set the clock.
constexpr std::int64_t kOffsetPeriodNs = 100'000'000;

/// Frames taken from one ring before the next one's turn, and before frames that are due are sent.
constexpr int kBatch = 4;

/// The memory of all rings together; a ring takes its share, within bounds.
constexpr std::int64_t kAllRingsBytes = 96LL << 20;
constexpr std::int64_t kSmallestRingBytes = 2LL << 20;
constexpr std::int64_t kLargestRingBytes = 16LL << 20;

}  // namespace

Forwarder::Forwarder(const Config& config, Board& board)
    : board_(board),
      longest_frame_bytes_(config.mtu + kEthernetHeaderBytes),
      model_(config.timing),
      realtime_offset_ns_(measure_realtime_offset_ns()) {
  lookahead_ns_ = std::max<std::int64_t>(0, model_.lookahead_ns() - kVisibleAfterNs);
  const std::int64_t ring_bytes = std::clamp(kAllRingsBytes / static_cast<std::int64_t>(config.ports.size()),
                                             kSmallestRingBytes, kLargestRingBytes);
  for (const PortConfig& port : config.ports) {
    table_.learn(port.mac, ports_.size());
    interfaces_.push_back(port.interface);
    ports_.push_back({ReceiveRing(port.interface, longest_frame_bytes_, ring_bytes), Sender(port.interface), {}, {}});
  }
}

void Forwarder::run(const std::atomic<bool>& stop, int wake_fd) noexcept {
  std::int64_t last_active_ns = 0;
  std::int64_t offset_measured_ns = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    const bool has_received = receive();
    const std::int64_t now_ns = read_monotonic_ns();
    admit(now_ns);
    const bool has_sent = send_due(now_ns);
    if (has_received || has_sent || pending_ > 0) {
      last_active_ns = now_ns;
    } else if (now_ns - last_active_ns > kLingerNs) {
      sleep(wake_fd);
      last_active_ns = read_monotonic_ns();
      offset_measured_ns = 0;
    }
    if (now_ns - offset_measured_ns > kOffsetPeriodNs) {
      realtime_offset_ns_ = measure_realtime_offset_ns();
      offset_measured_ns = now_ns;
    }
  }
}

bool Forwarder::receive() {
  bool has_received = false;
  for (std::size_t from = 0; from < ports_.size(); ++from) {
    for (int i = 0; i < kBatch; ++i) {
      const std::optional<ReceivedFrame> received = ports_[from].ring.take();
      if (!received) break;
      has_received = true;
      offer(from, *received);
    }
  }
  return has_received;
}

void Forwarder::offer(std::size_t from, const ReceivedFrame& received) {
  Port& port = ports_[from];
  PortCounters& counters = board_.ports[from];
  const Held frame{static_cast<std::uint32_t>(from), received.slot, received.bytes};
  ++pending_;
  counters.received.count(received.bytes);
  if (!received.has_checksum) warn_of_missing_checksum(from);
  const bool fits =
      received.is_whole && received.bytes <= longest_frame_bytes_ && received.bytes >= kEthernetHeaderBytes;
  const std::optional<std::size_t> to = fits ? table_.port_of(port.ring.data(received.slot)) : std::nullopt;
  // A stamp from the future is one from before somebody set the clock back.
  const std::int64_t arrival_ns = std::min(received.arrival_ns - realtime_offset_ns_, read_monotonic_ns());
  const std::optional<Crossing> crossing =
      fits && to != from ? model_.offer(from, arrival_ns, received.bytes) : std::nullopt;
  if (crossing) {
    port.incoming.push({frame, *crossing, to});
  } else {
    counters.dropped.count(received.bytes);
    release(frame);
  }
}

void Forwarder::admit(std::int64_t now_ns) {
  if (pending_ == 0) return;
  while (true) {
    Port* next = nullptr;
    for (Port& port : ports_) {
      if (port.incoming.empty()) continue;
      if (next == nullptr || port.incoming.front().crossing.ready_ns < next->incoming.front().crossing.ready_ns)
        next = &port;
    }
    if (next == nullptr || next->incoming.front().crossing.ready_ns > now_ns + lookahead_ns_) return;
    const Incoming incoming = next->incoming.front();
    next->incoming.pop();
    if (incoming.to) {
      admit_at(*incoming.to, incoming);
    } else {
      for (std::size_t to = 0; to < ports_.size(); ++to) {
        if (to != incoming.frame.from) admit_at(to, incoming);
      }
    }
    release(incoming.frame);
  }
}

void Forwarder::admit_at(std::size_t to, const Incoming& incoming) {
  const std::optional<std::int64_t> release_ns = model_.admit(to, incoming.crossing);
  if (!release_ns) {
    board_.ports[to].dropped.count(incoming.frame.bytes);
    return;
  }
  ports_[incoming.frame.from].ring.hold(incoming.frame.slot);
  ++pending_;
  ports_[to].outgoing.push({incoming.frame, *release_ns});
}

bool Forwarder::send_due(std::int64_t now_ns) {
  if (pending_ == 0) return false;
  std::size_t first = 0;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (ports_[i].outgoing.empty()) continue;
    const Outgoing& outgoing = ports_[i].outgoing.front();
    const std::int64_t call_ns = outgoing.release_ns - ahead_ns(outgoing.frame.bytes);
    if (call_ns < first_ns) {
      first_ns = call_ns;
      first = i;
    }
  }
  if (first_ns > now_ns) return false;
  // One only: a send may run the receiving node's network stack and take 10 us, and frames have arrived in the
  // meantime.
  const Outgoing outgoing = ports_[first].outgoing.front();
  ports_[first].outgoing.pop();
  send(ports_[first], board_.ports[first], outgoing);
  release(outgoing.frame);
  return true;
}

void Forwarder::send(Port& port, PortCounters& counters, const Outgoing& outgoing) {
  const std::span frame(ports_[outgoing.frame.from].ring.data(outgoing.frame.slot), outgoing.frame.bytes);
  const std::int64_t ahead = ahead_ns(outgoing.frame.bytes);
  const bool is_sampled = send_cost_.wants_sample(frame.size());
  const std::int64_t called_ns = read_monotonic_ns();
  const bool is_sent = is_sampled ? port.sender.send_stamped(frame) : port.sender.send(frame);
  (is_sent ? counters.sent : counters.dropped).count(frame.size());
  if (is_sent) {
    const std::int64_t late_ns = called_ns + ahead - outgoing.release_ns;
    board_.lateness.add(late_ns);
    board_.lateness_series.add(called_ns, late_ns);
  }
  if (!is_sampled) return;
  if (const auto stamp_ns = port.sender.take_stamp_ns()) {
    send_cost_.learn(frame.size(), *stamp_ns - realtime_offset_ns_ - called_ns);
  }
}

std::int64_t Forwarder::ahead_ns(std::uint32_t frame_bytes) const {
  return send_cost_.estimate_ns(frame_bytes) + kCrossingsNs;
}

void Forwarder::release(const Held& frame) {
  ports_[frame.from].ring.release(frame.slot);
  --pending_;
}

void Forwarder::sleep(int wake_fd) {
  std::vector<pollfd> polled{{wake_fd, POLLIN, 0}};
  for (const Port& port : ports_) polled.push_back({port.ring.fd(), POLLIN, 0});
  board_.is_busy.store(false, std::memory_order_relaxed);
  poll(polled.data(), polled.size(), -1);
  board_.is_busy.store(true, std::memory_order_relaxed);
  for (const pollfd& one : polled) {
    if ((one.revents & POLLERR) == 0) continue;
    // The interface went down: reading the error clears it, else poll() would return at once for ever. Up again, it
    // works again.
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(one.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
}

void Forwarder::warn_of_missing_checksum(std::size_t port) {
  if (has_warned_) return;
  has_warned_ = true;
  std::fprintf(stderr,
               "fabricbench-switch: frames arrive at %s without checksums and will be discarded by their receivers; "
               "turn the nodes' offloads off (ethtool -K IF tx off tso off gso off)\n",
               interfaces_[port].c_str());
}

}  // namespace fabricbench::emulated_switch
