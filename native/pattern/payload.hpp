// Payloads that verification recognises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fabricbench {

/// A payload that every position and every message has its own part in.
inline void fill_payload(std::span<std::byte> payload, std::uint64_t seed) {
  std::uint64_t state = seed;
  for (std::size_t i = 0; i < payload.size(); ++i) {
    if (i % sizeof state == 0) state = state * 6364136223846793005U + 1442695040888963407U;
    payload[i] = static_cast<std::byte>(state >> (8 * (i % sizeof state)));
  }
}

}  // namespace fabricbench
