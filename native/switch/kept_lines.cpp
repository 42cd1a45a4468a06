#include "switch/kept_lines.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/failure.hpp"

namespace fabricbench::emulated_switch {

KeptLines::KeptLines(std::string path, std::string what, std::uint64_t largest_bytes)
    : path_(std::move(path)), what_(std::move(what)), largest_bytes_(largest_bytes) {
  if (path_.empty()) return;
  file_.rdbuf()->pubsetbuf(nullptr, 0);  // a buffer would keep what could not be written and write it once more
  std::remove((path_ + ".old").c_str());
  file_.open(path_, std::ios::trunc);
  if (!file_) throw OutputError("cannot write the " + what_ + " file " + path_ + ": " + std::strerror(errno));
}

void KeptLines::append(const std::string& lines) {
  if (lines.empty() || path_.empty()) return;
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
    std::fprintf(stderr, "fabricbench-switch: cannot write the %s file %s\n", what_.c_str(), path_.c_str());
    has_complained_ = true;
  }
  file_.clear();  // the next time it may work
}

}  // namespace fabricbench::emulated_switch
