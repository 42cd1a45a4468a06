// The record of a kernel's run as JSON lines (contract: src/fabricbench/record/kernel_lines.py). Flushed after each
// run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/line_file.hpp"
#include "kernel/frame/profile.hpp"
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

class Record {
 public:
  /// Open a file, or stdout for `-`. Throws OutputError, as all of this does where it cannot write.
  explicit Record(const std::string& path) : file_(path) {}

  /// `ranks` are the RankInfo objects of the ranks that take part, in order.
  void write_header(const Kernel& kernel, Class problem, const std::vector<nlohmann::json>& ranks,
                    const std::string& mpi_library);
  void write_run(const Result& result, const Profile& profile);
  void write_footer();

 private:
  LineFile file_;
  int runs_ = 0;
  int verified_ = 0;
};

}  // namespace fabricbench::npb
