// The lateness series on disk, for the lab to read after each launch: a JSON object a line, one for each window in
// which a frame left.
//
//   {"begin_unix_ns": 0, "end_unix_ns": 5000000, "maximum": 812, "held_ns": 1900, "frames": [[63, 40], [831, 1]]}
//
// `held_ns` is for how long some frame was held that should have left (`HeldTime`); what was held from an earlier
// window on counts in the one in which it left. `frames` are pairs: so many frames left at most so many nanoseconds
// late, and later than the pair before says.
#pragma once

#include <cstdint>
#include <string>

#include "switch/kept_lines.hpp"
#include "switch/lateness.hpp"

namespace fabricbench::emulated_switch {

class LatenessFile {
 public:
  /// With traffic all the time, and 350 bytes a line as on a busy machine, what is kept is the last eight minutes at
  /// least.
  static constexpr std::uint64_t kLargestBytes = KeptLines::kLargestBytes;

  /// Begins empty; with an empty path nothing is kept. OutputError where it cannot be written.
  explicit LatenessFile(std::string path, std::uint64_t largest_bytes = kLargestBytes);

  /// Appends every window that is over.
  void append(LatenessSeries& series);

 private:
  KeptLines lines_;
};

/// A window as a line; `realtime_offset_ns` is what to add to CLOCK_MONOTONIC.
std::string line_of(const LatenessWindow& window, std::int64_t realtime_offset_ns);

}  // namespace fabricbench::emulated_switch
