// When a frame gets where: the timing model of a switch and its links. Pure, no I/O, no clock. How many bytes a frame
// takes on a link is the twin of testbed/wire.py.
//
// A frame passes stages, each of which must see frames in the order of time:
//   offer(ingress port, arrival)  the host's link carries it to the switch: when could it be forwarded?
//   pass(segment, crossing)       a link that others share carries it on: when could it be forwarded behind that one?
//   admit(egress port, crossing)  the egress link carries it to the other host: when does its last bit get there?
// The caller (forwarding_loop.hpp) calls offer() as frames come, and pass() for each segment of a frame's route, then
// admit(), in the order of `ready_ns` over all frames. Behind a switch every route is empty; in a torus of rings it has
// the segments between neighbours.
//
// All times are whole nanoseconds of one clock. A link carries the fraction that a division leaves over into its next
// frame, so that a million frames take what a million frames must, to the nanosecond.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace fabricbench::emulated_switch {

/// A fabric that cuts frames into cells: each `payload_bytes` of them travel as `cell_bytes`.
struct CellTax {
  std::int64_t payload_bytes;
  std::int64_t cell_bytes;
};

/// What a frame costs on the wire. Frame lengths include the Ethernet header and not the frame check.
struct Wire {
  std::int64_t overhead_bytes = 24;
  std::int64_t minimum_bytes = 84;
  std::optional<CellTax> cell;

  [[nodiscard]] std::int64_t wire_bytes(std::int64_t frame_bytes) const {
    const std::int64_t bytes = frame_bytes + overhead_bytes;
    if (cell) {
      // A negative overhead (no Ethernet header on the emulated link) may not make a tiny frame free.
      const std::int64_t cells = std::max<std::int64_t>(1, (bytes + cell->payload_bytes - 1) / cell->payload_bytes);
      return cells * cell->cell_bytes;
    }
    return std::max(bytes, minimum_bytes);
  }

  /// What a cut-through switch reads before it forwards: the first cell, else 64 bytes: preamble, Ethernet and IP
  /// headers, rounded up to the smallest frame, which is also where a switch of that time can rule out a collision
  /// fragment.
  [[nodiscard]] std::int64_t header_bytes() const { return cell ? cell->cell_bytes : 64; }
};

/// `none` is a cable between two ports: a frame is on the second port's link as soon as it is on the first one's.
enum class Switching { store_and_forward, cut_through, none };

/// One direction of one link: serves frames one after another at its line rate.
class Link {
 public:
  explicit Link(std::int64_t line_rate_bit_s) : line_rate_bit_s_(line_rate_bit_s) {}

  struct Occupation {
    std::int64_t start_ns;
    std::int64_t end_ns;
  };

  /// Puts a frame on the link as soon as it is free, not before `earliest_ns`; it does not end before `not_before_ns`.
  Occupation occupy(std::int64_t earliest_ns, std::int64_t wire_bytes, std::int64_t not_before_ns = 0);

  /// The bytes that are still to be sent at `now_ns`.
  [[nodiscard]] std::int64_t backlog_bytes(std::int64_t now_ns) const;

  /// How long `wire_bytes` take, rounded down, without occupying the link.
  [[nodiscard]] std::int64_t serialisation_ns(std::int64_t wire_bytes) const;

 private:
  std::int64_t line_rate_bit_s_;
  std::int64_t busy_until_ns_ = 0;
  std::int64_t remainder_ = 0;  // of the division by the line rate, carried into the next frame
};

struct PortTiming {
  std::int64_t line_rate_bit_s;
  std::int64_t delay_up_ns;    // propagation from the node to the switch
  std::int64_t delay_down_ns;  // and back
};

/// A link between two nodes of a ring, in its one direction. `latency_ns` is added to each frame that crosses it.
struct SegmentTiming {
  std::int64_t line_rate_bit_s;
  std::int64_t latency_ns;
};

/// The segments that a frame crosses, in their order.
using Route = std::vector<std::uint32_t>;

struct FabricTiming {
  Wire wire;
  Switching switching = Switching::store_and_forward;
  std::int64_t switch_latency_ns = 0;
  std::int64_t port_buffer_bytes = 0;    // wire bytes an egress port may have waiting, the frame on the wire included
  std::int64_t host_queue_bytes = 0;     // the same for the host's interface
  std::int64_t coalesce_ns = 0;          // how long a host's interface holds a frame for others to come
  std::int64_t interrupt_period_ns = 0;  // a host's interface tells of frames at multiples of it alone; 0: at once
  std::vector<PortTiming> ports;
  std::vector<SegmentTiming> segments;
  std::vector<std::vector<Route>> routes;  // [from][to]; empty: no frame crosses a segment
};

/// A frame that is on its way through the switch.
struct Crossing {
  std::int64_t ready_ns;  // when the next link may start to send it
  std::int64_t tail_ns;   // when its last bit can be forwarded at the earliest
  std::int64_t wire_bytes;
};

class TimingModel {
 public:
  explicit TimingModel(const FabricTiming& timing);

  /// A host hands over a frame at `arrival_ns`; nothing is returned where the host's queue is full.
  std::optional<Crossing> offer(std::size_t port, std::int64_t arrival_ns, std::int64_t frame_bytes);

  /// The segments between two ports.
  [[nodiscard]] const Route& route(std::size_t from, std::size_t to) const {
    return routes_.empty() ? no_route_ : routes_[from][to];
  }
  [[nodiscard]] std::size_t segments() const { return segments_.size(); }

  /// A segment carries the frame on; nothing is returned where more waits for it than a port's buffer holds. It is
  /// shared in pieces of packets: a frame that comes in slowly takes no more of it than its bytes.
  std::optional<Crossing> pass(std::size_t segment, const Crossing& crossing);

  /// Returns when the frame is received behind `port`, or nothing where the port's buffer is full (drop-tail). An empty
  /// port takes any frame, however small its buffer. Where interrupts are coalesced the first frame after one waits for
  /// the next, and with it all that come until then; where they come in a period all wait for its next multiple.
  std::optional<std::int64_t> admit(std::size_t port, const Crossing& crossing);

  /// How long a frame that was offered then waited for its host's link to carry those before it.
  [[nodiscard]] std::int64_t link_wait_ns(std::size_t port, std::int64_t arrival_ns, const Crossing& offered) const;

  /// How long a frame is under way between two ports where nothing else is, without the switch's own latency: what its
  /// links alone take.
  [[nodiscard]] std::int64_t wire_ns(std::size_t from, std::size_t to, std::int64_t frame_bytes) const;

  /// The shortest time from any arrival to its `ready_ns`: a frame that has not arrived by now cannot be ready before
  /// now + lookahead, so whatever is ready by then may be admitted in order (Chandy and Misra, 1979). Without a switch
  /// it is as good as endless: each end hears one other, whose frames are in order by themselves.
  [[nodiscard]] std::int64_t lookahead_ns() const { return lookahead_ns_; }

 private:
  struct Port {
    Link ingress;
    Link egress;
    std::int64_t delay_up_ns;
    std::int64_t delay_down_ns;
    std::int64_t interrupt_ns = 0;  // when its host hears of frames next, or heard last
  };

  Wire wire_;
  Switching switching_;
  std::int64_t switch_latency_ns_;
  std::int64_t port_buffer_bytes_;
  std::int64_t host_queue_bytes_;
  std::int64_t coalesce_ns_;
  std::int64_t interrupt_period_ns_;
  struct Segment {
    Link link;
    std::int64_t latency_ns;
  };

  /// Whether so many bytes more find room behind what waits for a link at that time.
  [[nodiscard]] bool has_room(const Link& link, const Crossing& crossing) const;
  std::vector<Port> ports_;
  std::vector<Segment> segments_;
  std::vector<std::vector<Route>> routes_;
  Route no_route_;
  std::int64_t lookahead_ns_;
};

}  // namespace fabricbench::emulated_switch
