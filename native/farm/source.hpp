// Where the inputs of jobs come from, on rank 0: a file, a folder with one for each, or bytes that are made up from the
// job's number, the same wherever and whenever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/socket.hpp"
#include "farm/plan.hpp"

namespace fabricbench::farm {

/// One input, read from its beginning to its end.
class Input {
 public:
  /// Made up for a job.
  Input(int job, std::uint64_t bytes);
  /// A file. Throws Failure where it cannot be read.
  explicit Input(const std::string& path);

  std::uint64_t bytes() const { return bytes_; }
  /// The next bytes, as many as there is room for. Throws Failure; also where the file is shorter than it was.
  void read(std::span<std::byte> into);

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t bytes_;
  std::uint64_t at_ = 0;
  std::uint64_t seed_ = 0;
};

class Source {
 public:
  /// Throws InputError where what the plan names is not there, or no folder of so many files.
  explicit Source(const FarmPlan& plan);

  /// What a job's input is called where the job runs.
  std::string name_of(int job) const;
  /// It has a descriptor of its own until it goes. Throws Failure.
  Input open(int job) const;

 private:
  const std::string& file_of(int job) const;

  std::uint64_t made_up_bytes_;
  std::vector<std::string> files_;  // none, one, or one for each job
};

}  // namespace fabricbench::farm
