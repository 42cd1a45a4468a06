#include "switch/timing.hpp"

#include <algorithm>
#include <limits>

namespace fabricbench::emulated_switch {
namespace {

constexpr std::int64_t kBitNanoseconds = 8 * 1'000'000'000LL;  // wire bytes x this / (bit/s) = ns

/// Longer than any frame takes, and short enough to be added to any time.
constexpr std::int64_t kEndlessLookaheadNs = 1'000'000'000;

/// What of a frame has to be there before it is passed on.
std::int64_t bytes_before_forwarding(Switching switching, const Wire& wire, std::int64_t wire_bytes) {
  switch (switching) {
    case Switching::store_and_forward:
      return wire_bytes;
    case Switching::cut_through:
      return std::min(wire_bytes, wire.header_bytes());
    case Switching::none:
      return 0;
  }
  return wire_bytes;
}

}  // namespace

Link::Occupation Link::occupy(std::int64_t earliest_ns, std::int64_t wire_bytes, std::int64_t not_before_ns) {
  const std::int64_t work = wire_bytes * kBitNanoseconds + remainder_;
  const std::int64_t start_ns = std::max(earliest_ns, busy_until_ns_);
  busy_until_ns_ = std::max(start_ns + work / line_rate_bit_s_, not_before_ns);
  remainder_ = work % line_rate_bit_s_;
  return {start_ns, busy_until_ns_};
}

std::int64_t Link::backlog_bytes(std::int64_t now_ns) const {
  const std::int64_t left_ns = busy_until_ns_ - now_ns;
  if (left_ns <= 0) return 0;
  return static_cast<std::int64_t>(static_cast<double>(left_ns) * static_cast<double>(line_rate_bit_s_) /
                                   static_cast<double>(kBitNanoseconds));
}

std::int64_t Link::serialisation_ns(std::int64_t wire_bytes) const {
  return wire_bytes * kBitNanoseconds / line_rate_bit_s_;
}

TimingModel::TimingModel(const FabricTiming& timing)
    : wire_(timing.wire),
      switching_(timing.switching),
      switch_latency_ns_(timing.switch_latency_ns),
      port_buffer_bytes_(timing.port_buffer_bytes),
      host_queue_bytes_(timing.host_queue_bytes),
      coalesce_ns_(timing.coalesce_ns),
      interrupt_period_ns_(timing.interrupt_period_ns),
      routes_(timing.routes),
      lookahead_ns_(std::numeric_limits<std::int64_t>::max()) {
  const std::int64_t read_bytes = bytes_before_forwarding(switching_, wire_, wire_.wire_bytes(0));
  for (const PortTiming& port : timing.ports) {
    ports_.push_back({Link(port.line_rate_bit_s), Link(port.line_rate_bit_s), port.delay_up_ns, port.delay_down_ns});
    lookahead_ns_ = std::min(
        lookahead_ns_, ports_.back().ingress.serialisation_ns(read_bytes) + port.delay_up_ns + switch_latency_ns_);
  }
  if (switching_ == Switching::none) lookahead_ns_ = kEndlessLookaheadNs;
  for (const SegmentTiming& segment : timing.segments) {
    segments_.push_back({Link(segment.line_rate_bit_s), segment.latency_ns});
  }
}

std::optional<Crossing> TimingModel::offer(std::size_t port, std::int64_t arrival_ns, std::int64_t frame_bytes) {
  Port& from = ports_[port];
  if (from.ingress.backlog_bytes(arrival_ns) > host_queue_bytes_) return std::nullopt;
  const std::int64_t wire_bytes = wire_.wire_bytes(frame_bytes);
  const Link::Occupation carried = from.ingress.occupy(arrival_ns, wire_bytes);
  const std::int64_t behind_ns = from.delay_up_ns + switch_latency_ns_;
  const std::int64_t tail_ns = carried.end_ns + behind_ns;
  if (switching_ == Switching::store_and_forward) return Crossing{tail_ns, tail_ns, wire_bytes};
  const std::int64_t header_ns = from.ingress.serialisation_ns(bytes_before_forwarding(switching_, wire_, wire_bytes));
  return Crossing{carried.start_ns + header_ns + behind_ns, tail_ns, wire_bytes};
}

std::int64_t TimingModel::link_wait_ns(std::size_t port, std::int64_t arrival_ns, const Crossing& offered) const {
  const Port& from = ports_[port];
  const std::int64_t alone_ns =
      from.ingress.serialisation_ns(offered.wire_bytes) + from.delay_up_ns + switch_latency_ns_;
  return std::max<std::int64_t>(0, offered.tail_ns - arrival_ns - alone_ns);
}

std::int64_t TimingModel::wire_ns(std::size_t from, std::size_t to, std::int64_t frame_bytes) const {
  const Port& ingress = ports_[from];
  const std::int64_t wire_bytes = wire_.wire_bytes(frame_bytes);
  std::int64_t tail_ns = ingress.ingress.serialisation_ns(wire_bytes) + ingress.delay_up_ns;
  std::int64_t ready_ns = tail_ns;
  if (switching_ != Switching::store_and_forward) {
    ready_ns =
        ingress.ingress.serialisation_ns(bytes_before_forwarding(switching_, wire_, wire_bytes)) + ingress.delay_up_ns;
  }
  for (const std::uint32_t segment : route(from, to)) {
    const Segment& one = segments_[segment];
    tail_ns = std::max(ready_ns + one.link.serialisation_ns(wire_bytes), tail_ns) + one.latency_ns;
    ready_ns += one.latency_ns;
  }
  const Port& egress = ports_[to];
  return std::max(ready_ns + egress.egress.serialisation_ns(wire_bytes), tail_ns) + egress.delay_down_ns;
}

bool TimingModel::has_room(const Link& link, const Crossing& crossing) const {
  const std::int64_t waiting_bytes = link.backlog_bytes(crossing.ready_ns);
  return waiting_bytes == 0 || waiting_bytes + crossing.wire_bytes <= port_buffer_bytes_;
}

std::optional<Crossing> TimingModel::pass(std::size_t segment, const Crossing& crossing) {
  Segment& own = segments_[segment];
  if (!has_room(own.link, crossing)) return std::nullopt;
  const Link::Occupation carried = own.link.occupy(crossing.ready_ns, crossing.wire_bytes);
  return Crossing{carried.start_ns + own.latency_ns, std::max(carried.end_ns, crossing.tail_ns) + own.latency_ns,
                  crossing.wire_bytes};
}

std::optional<std::int64_t> TimingModel::admit(std::size_t port, const Crossing& crossing) {
  Port& to = ports_[port];
  if (!has_room(to.egress, crossing)) return std::nullopt;
  // A faster egress link that cut through too soon would run dry: it ends no sooner than the tail allows.
  const std::int64_t come_ns =
      to.egress.occupy(crossing.ready_ns, crossing.wire_bytes, crossing.tail_ns).end_ns + to.delay_down_ns;
  if (interrupt_period_ns_ > 0) {
    return (come_ns + interrupt_period_ns_ - 1) / interrupt_period_ns_ * interrupt_period_ns_;
  }
  if (coalesce_ns_ == 0) return come_ns;
  if (come_ns > to.interrupt_ns) to.interrupt_ns = come_ns + coalesce_ns_;
  return to.interrupt_ns;
}

}  // namespace fabricbench::emulated_switch
