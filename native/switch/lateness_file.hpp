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
#include <fstream>
#include <string>

#include "switch/lateness.hpp"

namespace fabricbench::emulated_switch {

class LatenessFile {
 public:
  /// Two of these are kept, the one that grows and the full one before it (`.old`): at most 64 MiB on the disk. With
  /// traffic all the time, and 350 bytes a line as on a busy machine, that is the last eight minutes at least. What is
  /// older is dropped.
  static constexpr std::uint64_t kLargestBytes = 32ULL << 20U;

  /// Begins empty; with an empty path nothing is kept. OutputError where it cannot be written.
  explicit LatenessFile(std::string path, std::uint64_t largest_bytes = kLargestBytes);

  /// Appends every window that is over. A full disk costs windows and not the network: it is said once. What is written
  /// next begins with a newline, so that a line cut short takes no other with it; readers pass over such lines.
  void append(LatenessSeries& series);

 private:
  void write(const std::string& lines);

  std::string path_;
  std::uint64_t largest_bytes_;
  std::ofstream file_;
  std::uint64_t bytes_ = 0;
  bool has_complained_ = false;
  bool is_cut_ = false;
};

/// A window as a line; `realtime_offset_ns` is what to add to CLOCK_MONOTONIC.
std::string line_of(const LatenessWindow& window, std::int64_t realtime_offset_ns);

}  // namespace fabricbench::emulated_switch
