// The record of a farm, one JSON object a line (contract: src/fabricbench/record/farm_lines.py): each attempt's line is
// written when it ends, so that what was done is told also by a farm that dies. Outputs that are brought back are
// members of a tar archive beside it (POSIX.1-1988 ustar), one file however many jobs there are.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/line_file.hpp"
#include "core/traffic.hpp"
#include "farm/messages.hpp"
#include "farm/plan.hpp"
#include "farm/schedule.hpp"

namespace fabricbench::farm {

/// One attempt; times are seconds since the farm began.
struct AttemptTold {
  int job = 0;
  int attempt = 0;
  std::string node;
  int rank = 0;
  double given_s = 0;
  std::optional<double> staged_s;  // when its input was there; nothing where it never was
  double ended_s = 0;
  std::uint64_t input_bytes = 0;
  std::string input_digest;
  bool is_last = true;  // of the job
  bool counts = true;   // among those that a job may fail; not where its node failed
};

struct FarmTotals {
  double seconds = 0;
  std::size_t done = 0;
  std::size_t lost = 0;
  std::size_t retried = 0;
  std::uint64_t staged_bytes = 0;
  std::map<std::string, std::string> left_out;  // node -> why it was given nothing more
  std::vector<std::string> left_behind;         // what could not be removed
  Traffic interfaces;
};

class FarmRecord {
 public:
  /// Open a file. Throws OutputError, as all of this does where it cannot write.
  FarmRecord(const std::string& path, const FarmPlan& plan);

  void write_header(const std::vector<nlohmann::json>& ranks, const std::vector<int>& workers,
                    const std::string& mpi_library);
  void write_attempt(const AttemptTold& told, const FarmResult& result);
  /// One that could be given to nobody.
  void write_lost(const Given& given, const std::string& why, double ended_s);
  void write_footer(const FarmTotals& totals);

 private:
  void keep_output(const AttemptTold& told, std::string_view output);

  LineFile file_;
  const FarmPlan& plan_;
  std::optional<LineFile> outputs_;
  std::size_t attempts_ = 0;
};

/// The head of a member of a tar archive.
std::string tar_head(const std::string& name, std::size_t bytes);

}  // namespace fabricbench::farm
