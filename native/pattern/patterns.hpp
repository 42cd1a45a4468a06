// The patterns of two ranks, each a type in a header of its own with
//
//   timing_member                which of the two keeps the time
//   runs_over<T>                 whether it runs over a transport: Transport<T>, LocalTransport<T> or either
//   Over<T>                      the pattern over one, built as Over(transport, task) with all its buffers, which
//                                task.allocate() lends; its run() measures on this rank, the other runs its own at the
//                                same time: fills task.samples, returns how it ended
//
// pattern/pingpong.hpp is the simplest. Everything else that is known of a pattern is in the table.
#pragma once

#include "core/pattern_facts.hpp"
#include "pattern/pair_patterns.inc"

namespace fabricbench {

template <class... Each>
constexpr std::size_t timing_member_of(PatternList<Each...>, Pattern pattern) {
  std::size_t member = 0;
  ((Each::pattern == pattern ? void(member = Each::timing_member) : void()), ...);
  return member;
}

/// The member that keeps the time of a pattern of two ranks.
constexpr std::size_t timing_member_of(Pattern pattern) { return timing_member_of(Patterns{}, pattern); }

}  // namespace fabricbench
