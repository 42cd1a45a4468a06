// Writes the record, one JSON object a line (contract: src/fabricbench/record/lines.py). Flushed at each cell's end, so
// that whatever dies, finished cells are on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/line_file.hpp"
#include "core/plan.hpp"
#include "core/report.hpp"

namespace fabricbench {

class RecordWriter {
 public:
  /// Open a file, or stdout for `-`. Throws OutputError.
  explicit RecordWriter(const std::string& path) : file_(path) {}

  /// `ranks` are the RankInfo objects of all ranks, in order; `not_counted` is what they cannot count
  /// (core/counters.hpp).
  void write_header(const Plan& plan, const std::vector<nlohmann::json>& ranks, const ClockInfo& clock,
                    const std::string& mpi_library, const nlohmann::json& not_counted);
  /// How a rank's clock is read against rank 0's, found at the "begin" or the "end" of the launch.
  void write_clock(const ClockModel& clock, int rank, std::string_view phase);
  /// A cell: its opening, with the joined report's samples; then the parts of each rank that has some; then its end.
  void open_cell(const PlanProbe& probe, const CellReport& report);
  void write_parts(const PlanProbe& probe, const CellParts& parts);
  void close_cell(const PlanProbe& probe, const CellReport& report);
  /// The last line; the record is on the disk then. Throws OutputError.
  void write_footer();

 private:
  /// Those from position `begin` of the phase on.
  void write_samples(int cell, std::string_view phase, std::size_t begin, const PhaseSamples& samples,
                     std::span<const std::uint32_t> missed);
  void write_channel(int cell, const ChannelReport& channel);
  void write_stages(int cell, const StageReport& report);
  void write_counters(int cell, const CounterReport& report);
  void write_failed_pair(int cell, const PairFailure& pair);
  void write_end(const PlanProbe& probe, const CellReport& report);
  void write_failed(const PlanProbe& probe, const CellFailure& failure, const CellReport& report);

  LineFile file_;
  std::size_t warmup_ = 0;    // samples of the open cell so far
  std::size_t measured_ = 0;  // likewise
  std::size_t cells_ = 0;
  std::size_t failed_ = 0;
};

}  // namespace fabricbench
