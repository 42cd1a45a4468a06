// A file of JSON lines, as every record is one. What has been flushed survives whatever process dies afterwards, what
// has been closed is on the disk.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/failure.hpp"

namespace fabricbench {

class LineFile {
 public:
  /// Open a file, or stdout for `-`. Throws OutputError.
  explicit LineFile(const std::string& path);
  /// Closes what was not closed, whatever comes of it: there is an error already, or nobody to hear of one.
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void add(const nlohmann::ordered_json& line);
  /// Text that the caller has made up itself, newlines included.
  void add_text(std::string_view text) { pending_ += text; }
  /// Write what was added. Throws OutputError.
  void flush();
  /// The same once it is worth a call of the system: of very many short lines.
  void flush_much() {
    if (pending_.size() >= much_bytes) flush();
  }
  /// Write what was added, bring all of it to the disk, and close: a full disk or quota of a file server may show only
  /// then. Nothing is added afterwards. Throws OutputError.
  void close();

 private:
  static constexpr std::size_t much_bytes = std::size_t{1} << 20U;

  [[noreturn]] void fail(const char* call) const;

  std::string path_;
  std::FILE* file_;
  std::string pending_;
};

/// The time of day as records have it.
std::int64_t unix_ns();

}  // namespace fabricbench
