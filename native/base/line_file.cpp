#include "base/line_file.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>

namespace fabricbench {

LineFile::LineFile(const std::string& path)
    : path_(path == "-" ? "stdout" : path), file_(path == "-" ? stdout : std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr) {
    throw OutputError("cannot open " + path + " for the records (" + std::strerror(errno) +
                      "): check that its folder exists on this host and can be written");
  }
}

LineFile::~LineFile() {
  if (file_ != stdout) std::fclose(file_);
}

void LineFile::add(const nlohmann::ordered_json& line) {
  pending_ += line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  pending_ += '\n';
}

void LineFile::flush() {
  const bool is_written =
      std::fwrite(pending_.data(), 1, pending_.size(), file_) == pending_.size() && std::fflush(file_) == 0;
  pending_.clear();
  if (!is_written) throw OutputError("cannot write " + path_ + " (" + std::strerror(errno) + "): is the disk full?");
}

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace fabricbench
