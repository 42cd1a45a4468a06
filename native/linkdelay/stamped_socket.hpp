// A UDP socket whose datagrams the kernel stamps on the way out and on the way in.
//
// The kernel numbers the datagrams of a socket from 0 (SOF_TIMESTAMPING_OPT_ID) and says with a stamp which one it is
// of: a stamp that comes late, or not at all, is never taken for the next datagram's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/socket.hpp"

namespace fabricbench::linkdelay {

/// Has the calling thread enter a network namespace, a PID's or that of a path, and stay there.
void enter(const std::string& network_namespace);

class StampedSocket {
 public:
  /// Opens a socket in the namespace that the thread is in, and binds it to the address.
  explicit StampedSocket(const std::string& address);

  void connect_to(const StampedSocket& other);

  /// Returns the number by which take_sent_ns() knows the datagram.
  std::uint32_t send(std::span<const std::uint8_t> datagram);

  /// When that datagram was handed to the interface, CLOCK_REALTIME; nothing where its stamp did not come in time.
  /// Stamps of earlier datagrams are thrown away.
  std::optional<std::int64_t> take_sent_ns(std::uint32_t number, int timeout_ms);

  struct Arrival {
    // None in the first moments after a machine's first such socket: the kernel begins to stamp what arrives a little
    // after it was asked to (net_enable_timestamp defers it).
    std::optional<std::int64_t> received_ns;
    std::uint64_t sequence;  // the first eight bytes of the datagram
  };
  /// The next datagram, or nothing where none came in time.
  std::optional<Arrival> take_arrival(int timeout_ms);

 private:
  Descriptor socket_;
  std::uint32_t sent_ = 0;
};

}  // namespace fabricbench::linkdelay
