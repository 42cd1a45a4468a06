#include "switch/lateness_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/failure.hpp"

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
    : path_(std::move(path)), largest_bytes_(largest_bytes) {
  if (path_.empty()) return;
  file_.rdbuf()->pubsetbuf(nullptr, 0);  // a buffer would keep what could not be written and write it once more
  std::remove((path_ + ".old").c_str());
  file_.open(path_, std::ios::trunc);
  if (!file_) throw OutputError("cannot write the lateness file " + path_ + ": " + std::strerror(errno));
}

void LatenessFile::append(LatenessSeries& series) {
  // The clock may have been set meanwhile: half a second of windows is then off by as much.
  const std::int64_t offset_ns = measure_realtime_offset_ns();
  std::string lines;
  series.take(read_clock_ns(CLOCK_MONOTONIC), [&](const LatenessWindow& window) {
    if (!path_.empty()) lines += line_of(window, offset_ns);
  });
  if (!lines.empty()) write(lines);
}

void LatenessFile::write(const std::string& lines) {
  if (bytes_ + lines.size() > largest_bytes_) {
    file_.close();
    std::rename(path_.c_str(), (path_ + ".old").c_str());
    file_.open(path_, std::ios::trunc);
    bytes_ = 0;
    is_cut_ = false;
  }
  if (is_cut_) file_.put('\n');
  file_ << lines << std::flush;
  bytes_ += lines.size() + (is_cut_ ? 1 : 0);
  is_cut_ = !file_;
  if (!is_cut_) return;
  if (!has_complained_) {
    std::fprintf(stderr, "fabricbench-switch: cannot write the lateness file %s\n", path_.c_str());
    has_complained_ = true;
  }
  file_.clear();  // the next time it may work
}

}  // namespace fabricbench::emulated_switch
