// What the switch does with frames, turn by turn: takes them from the rings, asks the timing model when each is due,
// over the segments of its route where there are any, sends it then. Templates over what a port reads from and writes
// to and over the clock, so that tests drive this very loop with ports and a time of their own
// (native/tests/switch/forwarding_loop_test.cpp). Sleeping, and what needs a system, is forwarder.hpp's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "switch/config.hpp"
#include "switch/crossings.hpp"
#include "switch/frame.hpp"
#include "switch/last_segments.hpp"
#include "switch/send_cost.hpp"
#include "switch/statistics.hpp"
#include "switch/timing.hpp"

namespace fabricbench::emulated_switch {

/// A first-in first-out queue in one piece of memory, which grows when it is full and never shrinks: no allocation in
/// steady state.
template <typename Item>
class Fifo {
 public:
  Fifo() : items_(kFirstCapacity) {}

  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] const Item& front() const { return items_[head_ & (items_.size() - 1)]; }
  void pop() { ++head_; }

  void push(const Item& item) {
    if (tail_ - head_ == items_.size()) grow();
    items_[tail_++ & (items_.size() - 1)] = item;
  }

 private:
  static constexpr std::size_t kFirstCapacity = 1024;  // a power of two, as positions are masked

  void grow() {
    std::vector<Item> larger(items_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i) larger[i & (larger.size() - 1)] = items_[i & (items_.size() - 1)];
    items_.swap(larger);
  }

  std::vector<Item> items_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

/// Ring: take(), hold(slot), release(slot), data(slot), as ReceiveRing. Sender: send(frame), send_stamped(frame),
/// take_stamp_ns(), as Sender. Clock: now_ns(), monotonic.
template <typename Ring, typename Sender, typename Clock>
class ForwardingLoop {
 public:
  /// The two ends of a port.
  struct Ends {
    Ring ring;
    Sender sender;
  };

  /// `ends` are those of the configuration's ports, in their order.
  ForwardingLoop(const Config& config, Statistics& statistics, std::vector<Ends> ends, Clock clock = {})
      : statistics_(statistics),
        clock_(std::move(clock)),
        longest_frame_bytes_(config.mtu + kEthernetHeaderBytes),
        model_(config.timing),
        lookahead_ns_(model_.lookahead_ns() - kVisibleAfterNs),
        last_segments_(config.hold),
        passed_(model_.segments()) {
    for (const PortConfig& port : config.ports) {
      table_.learn(port.mac, ports_.size());
      Ends& own = ends[ports_.size()];
      ports_.push_back({std::move(own.ring), std::move(own.sender), {}, {}});
    }
  }

  /// Takes what has come, admits what may be, sends one frame at most. Returns whether it did anything or has frames.
  bool turn() {
    now_ns_ = clock_.now_ns();
    tell_of_a_stall();
    const bool has_received = receive();
    if (has_received) now_ns_ = clock_.now_ns();
    admit();
    const bool has_sent = send_due();
    return has_received || has_sent || pending_ > 0;
  }

  /// When the last turn was.
  [[nodiscard]] std::int64_t now_ns() const { return now_ns_; }

  /// What to add to the clock to get the one that frames are stamped with.
  void set_stamp_offset_ns(std::int64_t offset_ns) { stamp_offset_ns_ = offset_ns; }

  /// The first port at which a frame without a checksum came in.
  [[nodiscard]] std::optional<std::size_t> port_without_checksums() const { return port_without_checksums_; }

  [[nodiscard]] std::size_t ports() const { return ports_.size(); }
  [[nodiscard]] Ring& ring(std::size_t port) { return ports_[port].ring; }

 private:
  static constexpr std::int64_t kEthernetHeaderBytes = 14;

  /// What two veth crossings, into the ring and out to the node, add between the stamps at their two ends. It cannot be
  /// seen from in here; with it, the median of what fabricbench-linkdelay measures is within 0.2 us of what was asked.
  static constexpr std::int64_t kCrossingsNs = 200;

  /// A frame gets from its arrival stamp into the ring within this time, so the lookahead is shorter by it. Where the
  /// lookahead is shorter still (no preset's is), frames are admitted after they are ready: late rather than out of
  /// order.
  static constexpr std::int64_t kVisibleAfterNs = 2'000;

  /// Frames taken from one ring before the next one's turn, and before frames that are due are sent: more than arrive
  /// on a link of 10 Gbit/s during one send, so that rings run empty, and little enough (2 us) to keep nothing waiting.
  static constexpr int kBatch = 16;

  /// A full socket buffer empties while the receiving node's stack works: a frame is tried again after this time, and
  /// given up when it is that late, as it keeps a slot of its ring and those behind it waiting.
  static constexpr std::int64_t kRetryNs = 20'000;
  static constexpr std::int64_t kGiveUpNs = 5'000'000;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  /// A frame in its slot of the ring of the port it came in by.
  struct Held {
    std::uint32_t from;
    std::uint32_t slot;
    std::uint32_t bytes;
    std::int64_t measured_from_ns = kNever;  // its arrival, where a row of it is kept
    std::int64_t link_wait_ns = 0;           // and how long its host's link carried others first
    std::int64_t hold_ns = 0;                // how long it is held before its last link, as a fault asked for
  };
  struct Incoming {
    Held frame;
    Crossing crossing;
    std::optional<std::size_t> to;  // nothing: flood
    std::size_t segments_passed = 0;
  };
  struct Outgoing {
    Held frame;
    std::int64_t release_ns;
  };
  struct Port {
    Ring ring;
    Sender sender;
    Fifo<Incoming> incoming;             // in the order of ready_ns
    Fifo<Outgoing> outgoing;             // in the order of release_ns
    std::int64_t offered_ready_ns = 0;   // of the last frame from here: no later one can be ready before it
    std::int64_t admitted_ready_ns = 0;  // the latest of what was admitted to here
    std::int64_t not_before_ns = 0;      // the socket's buffer was full: the next try
  };

  /// Takes frames and finds the horizon: before it, no frame can become ready that is not known.
  bool receive() {
    bool has_received = false;
    horizon_ns_ = now_ns_ + lookahead_ns_;  // an empty ring has shown every frame that arrived by now
    for (std::size_t from = 0; from < ports_.size(); ++from) {
      std::optional<ReceivedFrame> received;
      for (int i = 0; i < kBatch; ++i) {
        received = ports_[from].ring.take();
        if (!received) break;
        has_received = true;
        offer(from, *received);
      }
      if (!received) continue;
      // There may be more, which are behind the last one taken: the link serves them in their order.
      const std::int64_t arrival_ns = received->arrival_ns - stamp_offset_ns_;
      horizon_ns_ = std::min(horizon_ns_, std::max(ports_[from].offered_ready_ns, arrival_ns + lookahead_ns_));
    }
    return has_received;
  }

  void offer(std::size_t from, const ReceivedFrame& received) {
    Port& port = ports_[from];
    PortCounters& counters = statistics_.ports[from];
    Held frame{static_cast<std::uint32_t>(from), received.slot, received.bytes};
    ++pending_;
    counters.received.count(received.bytes);
    if (!received.has_checksum && !port_without_checksums_) port_without_checksums_ = from;
    const bool fits =
        received.is_whole && received.bytes <= longest_frame_bytes_ && received.bytes >= kEthernetHeaderBytes;
    const std::optional<std::size_t> to = fits ? table_.port_of(port.ring.data(received.slot)) : std::nullopt;
    // A stamp from the future is one from before somebody set the clock back.
    std::int64_t arrival_ns = received.arrival_ns - stamp_offset_ns_;
    if (arrival_ns > now_ns_) arrival_ns = std::min(arrival_ns, clock_.now_ns());
    const std::optional<Crossing> crossing =
        fits && to != from ? model_.offer(from, arrival_ns, received.bytes) : std::nullopt;
    if (crossing) {
      port.offered_ready_ns = crossing->ready_ns;
      frame.hold_ns = last_segments_.hold_ns(port.ring.data(received.slot), received.bytes);
      if (is_measured(port.ring.data(received.slot), received.bytes)) [[unlikely]] {
        frame.measured_from_ns = arrival_ns;
        frame.link_wait_ns = model_.link_wait_ns(from, arrival_ns, *crossing);
      }
      port.incoming.push({frame, *crossing, to});
    } else {
      counters.dropped.count(received.bytes);
      release(frame);
    }
  }

  void admit() {
    if (pending_ == 0) return;
    while (true) {
      Fifo<Incoming>* next = nullptr;
      const auto consider = [&next](Fifo<Incoming>& queue) {
        if (queue.empty()) return;
        if (next == nullptr || queue.front().crossing.ready_ns < next->front().crossing.ready_ns) next = &queue;
      };
      for (Port& port : ports_) consider(port.incoming);
      for (Fifo<Incoming>& queue : passed_) consider(queue);
      if (next == nullptr || next->front().crossing.ready_ns > horizon_ns_) return;
      const Incoming incoming = next->front();
      next->pop();
      if (incoming.to) {
        move_on(*incoming.to, incoming);
      } else {
        for (std::size_t to = 0; to < ports_.size(); ++to) {
          if (to != incoming.frame.from) move_on(to, incoming);
        }
      }
      release(incoming.frame);
    }
  }

  /// Over the next segment of its route, or, behind the last one, to the egress port.
  void move_on(std::size_t to, const Incoming& incoming) {
    const Route& route = model_.route(incoming.frame.from, to);
    if (incoming.segments_passed == route.size()) {
      admit_at(to, incoming);
      return;
    }
    const std::uint32_t segment = route[incoming.segments_passed];
    const std::optional<Crossing> crossing = model_.pass(segment, incoming.crossing);
    if (!crossing) {
      statistics_.ports[to].dropped.count(incoming.frame.bytes);
      return;
    }
    hold(incoming.frame);
    passed_[segment].push({incoming.frame, *crossing, to, incoming.segments_passed + 1});
  }

  void admit_at(std::size_t to, const Incoming& incoming) {
    Port& port = ports_[to];
    if (incoming.crossing.ready_ns < port.admitted_ready_ns) {
      statistics_.ports[to].out_of_order_frames.add(1);
    } else {
      port.admitted_ready_ns = incoming.crossing.ready_ns;
    }
    Crossing crossing = incoming.crossing;
    crossing.ready_ns += incoming.frame.hold_ns;
    crossing.tail_ns += incoming.frame.hold_ns;
    const std::optional<std::int64_t> release_ns = model_.admit(to, crossing);
    if (!release_ns) {
      statistics_.ports[to].dropped.count(incoming.frame.bytes);
      return;
    }
    hold(incoming.frame);
    port.outgoing.push({incoming.frame, *release_ns});
  }

  bool send_due() {
    if (pending_ == 0) return false;
    std::size_t first = 0;
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (ports_[i].outgoing.empty()) continue;
      const Outgoing& outgoing = ports_[i].outgoing.front();
      const std::int64_t call_ns =
          std::max(outgoing.release_ns - ahead_ns(outgoing.frame.bytes), ports_[i].not_before_ns);
      if (call_ns < first_ns) {
        first_ns = call_ns;
        first = i;
      }
    }
    if (first_ns > now_ns_) return false;
    // One only: a send may run the receiving node's network stack and take 10 us, and frames have arrived in the
    // meantime.
    Port& port = ports_[first];
    const Outgoing outgoing = port.outgoing.front();
    if (send(first, outgoing)) {
      port.outgoing.pop();
      release(outgoing.frame);
    }
    return true;
  }

  /// The machine may stand still within a call, before the frame has left: what takes longer than a call can is time in
  /// which it was held.
  void tell_of_a_stall() {
    if (sent_ns_ != kNever && now_ns_ - sent_ns_ > SendCost::kLargestNs)
      statistics_.lateness_series.hold(sent_ns_, now_ns_);
    sent_ns_ = kNever;
  }

  /// Returns whether the frame is done with, sent or given up.
  bool send(std::size_t to, const Outgoing& outgoing) {
    Port& port = ports_[to];
    PortCounters& counters = statistics_.ports[to];
    const std::span frame(ports_[outgoing.frame.from].ring.data(outgoing.frame.slot), outgoing.frame.bytes);
    const std::int64_t ahead = ahead_ns(outgoing.frame.bytes);
    const bool is_sampled = send_cost_.wants_sample(frame.size());
    const std::int64_t called_ns = clock_.now_ns();
    const std::int64_t late_ns = called_ns + ahead - outgoing.release_ns;
    const Sending sending = is_sampled ? port.sender.send_stamped(frame) : port.sender.send(frame);
    if (sending == Sending::later && late_ns < kGiveUpNs) {
      counters.send_retries.add(1);
      port.not_before_ns = called_ns + kRetryNs;
      return false;
    }
    if (sending != Sending::done) {
      counters.unsent.count(frame.size());
      statistics_.lateness_series.hold(outgoing.release_ns, called_ns);
      return true;
    }
    sent_ns_ = called_ns;
    counters.sent.count(frame.size());
    statistics_.lateness.add(late_ns);
    statistics_.lateness_series.add(called_ns, late_ns);
    if (outgoing.frame.measured_from_ns != kNever) [[unlikely]] {
      statistics_.crossings.add(
          {outgoing.frame.measured_from_ns,
           outgoing.frame.link_wait_ns + model_.wire_ns(outgoing.frame.from, to, outgoing.frame.bytes),
           outgoing.release_ns, called_ns + ahead});
    }
    if (!is_sampled) return true;
    if (const auto stamp_ns = port.sender.take_stamp_ns()) {
      send_cost_.learn(frame.size(), *stamp_ns - stamp_offset_ns_ - called_ns);
    }
    return true;
  }

  [[nodiscard]] std::int64_t ahead_ns(std::uint32_t frame_bytes) const {
    return send_cost_.estimate_ns(frame_bytes) + kCrossingsNs;
  }

  void hold(const Held& frame) {
    ports_[frame.from].ring.hold(frame.slot);
    ++pending_;
  }

  void release(const Held& frame) {
    ports_[frame.from].ring.release(frame.slot);
    --pending_;
  }

  Statistics& statistics_;
  Clock clock_;
  std::int64_t longest_frame_bytes_;
  TimingModel model_;
  std::int64_t lookahead_ns_;
  LastSegments last_segments_;
  ForwardingTable table_;
  SendCost send_cost_;
  std::vector<Port> ports_;
  std::vector<Fifo<Incoming>> passed_;  // by segment: what has crossed it, in the order of ready_ns
  std::size_t pending_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t sent_ns_ = kNever;  // when the last turn began to send
  std::int64_t horizon_ns_ = 0;
  std::int64_t stamp_offset_ns_ = 0;
  std::optional<std::size_t> port_without_checksums_;
};

}  // namespace fabricbench::emulated_switch
