#include "switch/lateness_file.hpp"

#include <nlohmann/json.hpp>

#include "base/clock.hpp"

namespace fabricbench::emulated_switch {

std::string line_of(const LatenessWindow& window, std::int64_t realtime_offset_ns) {
  const std::int64_t begin_ns = window.begin_ns() + realtime_offset_ns;
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (std::size_t bucket = 0; bucket < LatenessWindow::kBuckets; ++bucket) {
    const std::uint32_t frames = window.frames(bucket);
    if (frames > 0) pairs.push_back({LatenessBuckets::upper_end(bucket), frames});
  }
  const nlohmann::ordered_json line{{"begin_unix_ns", begin_ns},
                                    {"end_unix_ns", begin_ns + LatenessSeries::kWindowNs},
                                    {"maximum", window.maximum()},
                                    {"held_ns", window.held_ns()},
                                    {"frames", pairs}};
  return line.dump() + '\n';
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
