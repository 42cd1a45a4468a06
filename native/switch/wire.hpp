// How many bytes a frame takes on a link: the C++ twin of testbed/wire.py. Pure arithmetic; when a frame moves is
// timing.hpp's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

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

}  // namespace fabricbench::emulated_switch
