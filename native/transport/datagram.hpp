// The header that messages of unreliable layers begin with, inside the payload: who belongs to the launch and which it
// is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace fabricbench {

struct DatagramHeader {
  std::uint32_t token;
  std::uint32_t sequence;

  friend bool operator==(const DatagramHeader&, const DatagramHeader&) = default;
};
static_assert(sizeof(DatagramHeader) == 8);

inline DatagramHeader read_header(std::span<const std::byte> message) {
  DatagramHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  return header;
}

inline void write_header(std::span<std::byte> message, DatagramHeader header) {
  std::memcpy(message.data(), &header, sizeof header);
}

}  // namespace fabricbench
