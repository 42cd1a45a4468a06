// What libfabricbench-socket-calls.so notes of the calls by which an MPI library moves bytes through its sockets. The
// measurer, into which it is preloaded, finds it by name and reads what it noted between two messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fabricbench {

/// One call that moved bytes. Times are ns of CLOCK_REALTIME.
struct SocketCall {
  std::int64_t began = 0;
  std::int64_t ended = 0;
  std::int64_t arrived =
      0;  // when the last of what it received came up from the driver; 0 where the kernel told nothing
  std::uint32_t bytes = 0;
  bool is_sending = false;
};

/// Calls of one thread on the sockets that are watched. Once `calls` is full, later ones are counted and not kept.
struct SocketCallLog {
  static constexpr std::size_t descriptors = 4096;

  SocketCall* calls = nullptr;
  std::size_t capacity = 0;
  std::size_t count = 0;
  std::array<bool, descriptors> is_watched{};
};

/// Note what the calling thread does from now on in this log, which stays the caller's; nullptr: note nothing more.
using NoteSocketCalls = void (*)(SocketCallLog* log);
inline constexpr const char* note_socket_calls_symbol = "fabricbench_note_socket_calls";

}  // namespace fabricbench
