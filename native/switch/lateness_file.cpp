#include "switch/lateness_file.hpp"

#include "base/clock.hpp"

namespace fabricbench::emulated_switch {

// Put together by hand: a hundred lines each half second, on a processor that a node may be measured on.
std::string line_of(const LatenessWindow& window, std::int64_t realtime_offset_ns) {
  const std::int64_t begin_ns = window.begin_ns() + realtime_offset_ns;
  std::string pairs;
  for (std::size_t bucket = 0; bucket < LatenessWindow::kBuckets; ++bucket) {
    const std::uint32_t frames = window.frames(bucket);
    if (frames == 0) continue;
    if (!pairs.empty()) pairs += ',';
    pairs += '[' + std::to_string(LatenessBuckets::upper_end(bucket)) + ',' + std::to_string(frames) + ']';
  }
  return "{\"begin_unix_ns\":" + std::to_string(begin_ns) +
         ",\"end_unix_ns\":" + std::to_string(begin_ns + LatenessSeries::kWindowNs) +
         ",\"maximum\":" + std::to_string(window.maximum()) + ",\"held_ns\":" + std::to_string(window.held_ns()) +
         ",\"frames\":[" + pairs + "]}\n";
}

LatenessFile::LatenessFile(std::string path, std::uint64_t largest_bytes)
    : lines_(std::move(path), "lateness", largest_bytes) {}

void LatenessFile::append(LatenessSeries& series) {
  // The clock may have been set meanwhile: half a second of windows is then off by as much.
  const std::int64_t offset_ns = measure_realtime_offset_ns();
  std::string lines;
  series.take(read_clock_ns(CLOCK_MONOTONIC), [&](const LatenessWindow& window) {
    if (lines_.is_kept()) lines += line_of(window, offset_ns);
  });
  lines_.append(lines);
}

}  // namespace fabricbench::emulated_switch
