// The forwarding loop: takes frames from the rings, asks the timing model when each is due, sends it then.
//
// Busy while there is traffic, as a wake-up costs more than many links' whole delay; asleep in poll() after a lull.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "switch/board.hpp"
#include "switch/config.hpp"
#include "switch/fifo.hpp"
#include "switch/forwarding.hpp"
#include "switch/ring.hpp"
#include "switch/send_cost.hpp"
#include "switch/sender.hpp"
#include "switch/timing.hpp"

namespace fabricbench::emulated_switch {

class Forwarder {
 public:
  /// Opens the rings and sockets of all ports; EnvironmentLacks where one cannot be had.
  Forwarder(const Config& config, Board& board);

  /// Forwards until `stop` is set; writing to the eventfd `wake_fd` gets it out of its sleep to look.
  void run(const std::atomic<bool>& stop, int wake_fd) noexcept;

  /// Frames that the kernel dropped at the port's full ring since the last call. May be called beside run().
  std::uint64_t take_lost_frames(std::size_t port) { return ports_[port].ring.take_lost_frames(); }

 private:
  /// A frame in its slot of the ring of the port it came in by.
  struct Held {
    std::uint32_t from;
    std::uint32_t slot;
    std::uint32_t bytes;
  };
  struct Incoming {
    Held frame;
    Crossing crossing;
    std::optional<std::size_t> to;  // nothing: flood
  };
  struct Outgoing {
    Held frame;
    std::int64_t release_ns;
  };
  struct Port {
    ReceiveRing ring;
    Sender sender;
    Fifo<Incoming> incoming;  // in the order of ready_ns
    Fifo<Outgoing> outgoing;  // in the order of release_ns
  };

  bool receive();
  void offer(std::size_t from, const ReceivedFrame& received);
  void admit(std::int64_t now_ns);
  void admit_at(std::size_t to, const Incoming& incoming);
  bool send_due(std::int64_t now_ns);
  void send(Port& port, PortCounters& counters, const Outgoing& outgoing);
  [[nodiscard]] std::int64_t ahead_ns(std::uint32_t frame_bytes) const;
  void release(const Held& frame);
  void sleep(int wake_fd);
  void warn_of_missing_checksum(std::size_t port);

  Board& board_;
  std::int64_t longest_frame_bytes_;
  std::int64_t lookahead_ns_;
  TimingModel model_;
  ForwardingTable table_;
  SendCost send_cost_;
  std::vector<Port> ports_;
  std::vector<std::string> interfaces_;
  std::size_t pending_ = 0;
  std::int64_t realtime_offset_ns_ = 0;
  bool has_warned_ = false;
};

}  // namespace fabricbench::emulated_switch
