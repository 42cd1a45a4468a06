// Where the two ends of a path stand, which both make of the same words: that path alone has its token and its secret,
// and only this launch's ranks can make them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "core/plan.hpp"
#include "core/secret.hpp"
#include "probe/path_cache.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

/// The same number for a text on every rank (FNV-1a).
inline std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0xcbf29ce484222325U;
  for (const char letter : text) number = (number ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return number;
}

inline Site site_of(const Plan& plan, int own_rank, const PathCache::Key& key, std::uint32_t generation) {
  const auto derived = [&](std::uint64_t purpose) {
    const std::array<std::uint64_t, 10> words{purpose,
                                              plan.token,
                                              static_cast<std::uint64_t>(std::min(own_rank, key.peer_rank)),
                                              static_cast<std::uint64_t>(std::max(own_rank, key.peer_rank)),
                                              key.flow,
                                              static_cast<std::uint64_t>(key.layer),
                                              static_cast<std::uint64_t>(key.receive),
                                              number_of(key.door),
                                              number_of(key.parameters),
                                              generation};
    return derive(plan.secret, words);
  };
  return {.token = static_cast<std::uint32_t>(derived(0)),
          .secret = {derived(1), derived(2)},
          .peer_rank = key.peer_rank,
          .flow = static_cast<int>(key.flow),
          .generation = generation,
          .is_first = own_rank < key.peer_rank};
}

}  // namespace fabricbench
