// A UDP socket in some network namespace whose datagrams the kernel stamps on the way out and on the way in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace fabricbench::linkdelay {

class StampedSocket {
 public:
  /// Enters the namespace, opens a socket there and binds it to the address; the calling thread stays in the namespace.
  StampedSocket(const std::string& network_namespace, const std::string& address);
  ~StampedSocket();
  StampedSocket(const StampedSocket&) = delete;
  StampedSocket& operator=(const StampedSocket&) = delete;

  void connect_to(const StampedSocket& other);
  void send(std::span<const std::uint8_t> datagram);

  /// When the datagram was handed to the interface, CLOCK_REALTIME; nothing where no stamp came in time.
  std::optional<std::int64_t> take_sent_ns(int timeout_ms);

  struct Arrival {
    std::int64_t received_ns;
    std::uint64_t sequence;  // the first eight bytes of the datagram
  };
  /// The next datagram, or nothing where none came in time.
  std::optional<Arrival> take_arrival(int timeout_ms);

 private:
  int fd_;
};

}  // namespace fabricbench::linkdelay
