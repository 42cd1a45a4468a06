// Sends frames out of one interface, past the queueing discipline, and can tell how long the way to the interface took.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "switch/sending.hpp"
#include "switch/socket.hpp"

namespace fabricbench::emulated_switch {

class Sender {
 public:
  explicit Sender(const std::string& interface);

  Sending send(std::span<const std::uint8_t> frame);

  /// Sends the frame with a transmit stamp asked for; read it with take_stamp_ns().
  Sending send_stamped(std::span<const std::uint8_t> frame);

  /// The CLOCK_REALTIME at which the interface got the frame of send_stamped(); nothing where no stamp came.
  std::optional<std::int64_t> take_stamp_ns();

 private:
  PacketSocket socket_;
};

}  // namespace fabricbench::emulated_switch
