// Lines that the switch keeps on the disk for the lab to read after each launch: the latest of them, in two files.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace fabricbench::emulated_switch {

class KeptLines {
 public:
  /// The file that grows and the full one before it (`.old`) are at most 64 MiB on the disk. What is older is dropped.
  static constexpr std::uint64_t kLargestBytes = 32ULL << 20U;

  /// Begins empty; with an empty path nothing is kept. `what` names the file in messages. OutputError where it cannot
  /// be written.
  KeptLines(std::string path, std::string what, std::uint64_t largest_bytes = kLargestBytes);

  [[nodiscard]] bool is_kept() const { return !path_.empty(); }

  /// Appends whole lines. A full disk costs lines and not the network: it is said once. What is written next begins
  /// with a newline, so that a line cut short takes no other with it; readers pass over such lines.
  void append(const std::string& lines);

 private:
  std::string path_;
  std::string what_;
  std::uint64_t largest_bytes_;
  std::ofstream file_;
  std::uint64_t bytes_ = 0;
  bool has_complained_ = false;
  bool is_cut_ = false;
};

}  // namespace fabricbench::emulated_switch
