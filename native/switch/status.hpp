// The status file and the lateness file, and the thread that writes them and answers signals, so that the forwarding
// loop does neither.
#pragma once

#include <atomic>
#include <string>

#include "switch/config.hpp"
#include "switch/forwarder.hpp"
#include "switch/kept_lines.hpp"
#include "switch/lateness_file.hpp"
#include "switch/statistics.hpp"

namespace fabricbench::emulated_switch {

class StatusKeeper {
 public:
  StatusKeeper(const Config& config, Statistics& statistics, Forwarder& forwarder);

  /// Appends to the files of lateness and crossings, then replaces the status file in one step; OutputError where it
  /// cannot be written. Whoever sees a new status finds the windows and frames up to it.
  void write();

  /// Blocks the signals that run_until_stopped() waits for; to be called before any thread is started.
  static void block_signals();

  /// Writes on SIGUSR1 and twice a second while there is traffic. Returns on SIGTERM and SIGINT.
  void run_until_stopped();

 private:
  /// Takes in what the rings lost; returns whether anything was counted since the last time.
  bool refresh();
  [[nodiscard]] std::string text() const;
  /// Appends what the forwarding thread has of windows and of frames to their files.
  void keep();

  const Config& config_;
  Statistics& statistics_;
  Forwarder& forwarder_;
  LatenessFile lateness_file_;
  KeptLines crossings_file_;
  std::uint64_t counted_ = 0;
  bool was_busy_ = false;
};

}  // namespace fabricbench::emulated_switch
