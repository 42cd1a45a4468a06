#include "base/line_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.hpp"

namespace fabricbench {

LineFile::LineFile(const std::string& path)
    : path_(path == "-" ? "stdout" : path), file_(path == "-" ? stdout : std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr) {
    throw OutputError("cannot open " + path + " for the records (" + std::strerror(errno) +
                      "): check that its folder exists on this host and can be written");
  }
}

LineFile::~LineFile() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

void LineFile::add(const nlohmann::ordered_json& line) {
  pending_ += json_text(line);
  pending_ += '\n';
}

void LineFile::flush() {
  const bool is_written =
      std::fwrite(pending_.data(), 1, pending_.size(), file_) == pending_.size() && std::fflush(file_) == 0;
  pending_.clear();
  if (!is_written) fail("write");
}

void LineFile::close() {
  flush();
  // A pipe or a terminal has no disk that it could be brought to.
  if (fsync(fileno(file_)) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) fail("fsync");
  if (std::FILE* const file = std::exchange(file_, nullptr); file != stdout && std::fclose(file) != 0) fail("close");
}

void LineFile::fail(const char* call) const {
  throw OutputError("cannot write " + path_ + " (" + call + ": " + std::strerror(errno) +
                    "): is the disk full, or the quota used up?");
}

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace fabricbench
