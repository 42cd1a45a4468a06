// What a run comes to: whether it is verified, its rates, the exit code that scripts rely on, what people read on rank
// 0, and the record that programs read.
#pragma once

#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/line_file.hpp"
#include "kernel/frame/kernel.hpp"
#include "kernel/frame/profile.hpp"

namespace fabricbench::kernel {

enum class Exit { verified = 0, wrong = 1, usage = 2, environment = 3 };

/// Every check holds, and there is at least one: a run that checked nothing has proved nothing.
bool is_verified(const Result& result);

/// The exit code after one more run. A wrong result is not made good by right ones that follow.
Exit after(Exit so_far, const Result& result);

double mops_total(const Result& result);

/// What is run, as reports and records name it.
struct Subject {
  std::string_view program;
  std::string_view kernel;
  const Problem& problem;
  std::vector<std::string> levels;  // of the programs that the ranks run, in order (level.hpp)
};

/// How fast, right or wrong, and where the time went.
void print_result(std::FILE* out, const Subject& subject, const Result& result, const Profile& profile);

/// JSON lines (contract: src/fabricbench/record/kernel_lines.py), flushed after each run.
class Record {
 public:
  /// Open a file, or stdout for `-`. Throws OutputError, as all of this does where it cannot write.
  explicit Record(const std::string& path) : file_(path) {}

  /// `ranks` are the RankInfo objects of the ranks that take part, in order.
  void write_header(const Subject& subject, const std::vector<nlohmann::json>& ranks, const std::string& mpi_library);
  void write_run(const Result& result, const Profile& profile);
  void write_footer();

 private:
  LineFile file_;
  int runs_ = 0;
  int verified_ = 0;
};

}  // namespace fabricbench::kernel
