// The packet sockets of a port: a ring shared with the kernel that frames are received in, and a socket that sends past
// the queueing discipline and can tell how long the way to the interface took.
#pragma once

#include <linux/if_packet.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/packet_ring.hpp"
#include "base/socket.hpp"
#include "switch/frame.hpp"

namespace fabricbench::emulated_switch {

/// A receive ring (TPACKET_V2): frames are read where the kernel put them, and stay there until they are given back, so
/// nothing is copied before send(). The kernel fills slots in order and drops frames at the first that is not back.
class ReceiveRing {
 public:
  /// A ring for frames up to `frame_bytes` that takes about `ring_bytes` of memory. Failure where the interface or a
  /// permission is missing.
  ReceiveRing(const std::string& interface, std::int64_t frame_bytes, std::int64_t ring_bytes);

  /// Takes the next frame, if one has come. Its slot is held once; hold() adds holders.
  std::optional<ReceivedFrame> take();
  void hold(std::uint32_t slot) { ++holders_[slot]; }
  /// Gives up one hold; the slot goes back to the kernel with the last.
  void release(std::uint32_t slot);

  [[nodiscard]] const std::uint8_t* data(std::uint32_t slot) const;
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] std::uint32_t slots() const { return ring_.slots(); }

  /// Frames that the kernel dropped since the last call because the ring was full.
  std::uint64_t take_lost_frames();

 private:
  Descriptor socket_;
  PacketRing ring_;
  std::uint32_t next_ = 0;
  std::vector<std::uint16_t> holders_;
};

class Sender {
 public:
  explicit Sender(const std::string& interface);

  Sending send(std::span<const std::uint8_t> frame);

  /// Sends the frame with a transmit stamp asked for; read it with take_stamp_ns().
  Sending send_stamped(std::span<const std::uint8_t> frame);

  /// The CLOCK_REALTIME at which the interface got the frame of send_stamped(); nothing where no stamp came.
  std::optional<std::int64_t> take_stamp_ns();

 private:
  Descriptor socket_;
};

}  // namespace fabricbench::emulated_switch
