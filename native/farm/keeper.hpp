// The process that runs the jobs of a node (runner.hpp), and what it is told (in CBOR: texts may
// be any bytes) and tells (in JSON) over a socket:
//
//   {"open": FOLDER}   ─► {"folder": PATH} or {"problem": TEXT}
//   {"run": ID, ...}   ─► {"id": ID, ...}    when the job and everything that it started has ended
//   {"close": true}    ─► {"closed": PROBLEM} when all have ended and the folder is removed
#pragma once

#include <cstddef>

namespace fabricbench::farm {

/// Bytes of an order that are taken.
inline constexpr std::size_t largest_order = std::size_t{192} << 10U;

/// Serve a worker until it closes the socket, dies, or SIGTERM comes; then end all jobs, and remove the folder.
[[noreturn]] void serve(int socket);

}  // namespace fabricbench::farm
