// Sorting keys by ranges of their values: the pass of IS that makes ready what goes to each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fabricbench::npb {

using Key = std::uint32_t;  // below 2^31

/// Keys from `least` up to the next stream's; they are to lie from index `begin` on.
struct Stream {
  Key least;
  std::size_t begin;
};

/// A whole vector of keys may be written where the last of them goes.
inline constexpr std::size_t spare_keys = 8;

/// Streams that one pass over the keys can tell apart.
inline constexpr std::size_t streams_of_a_pass = 8;

/// Puts each key into its stream. `streams`, one at least, ascend in value and place, begin at 0 both, and are as long
/// as their keys are many. `to`, and `scratch` where there are more streams than one pass takes, have room for
/// `spare_keys` more than `keys`. Keys of a stream may come in any order, always the same.
void sort_into_streams(std::span<const Key> keys, std::span<const Stream> streams, Key* to, Key* scratch);

}  // namespace fabricbench::npb
