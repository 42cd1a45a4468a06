// What a farm is asked to do (contract: src/fabricbench/record/farm_lines.py, schema/farm_plan.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fabricbench::farm {

/// `input_path` is a file that every job gets or a folder with a file for each, in the order of their names; without
/// one each job gets `input_bytes` of its own that are made up. An empty `command` reads its input and checks it.
struct FarmPlan {
  std::string name;
  int jobs = 1;
  std::uint64_t input_bytes = 0;
  std::optional<std::string> input_path;
  std::vector<std::string> command;
  int at_once = 1;  // on a node
  int retries = 0;
  double job_seconds = 0;          // a job that takes longer is killed
  std::uint64_t output_bytes = 0;  // that a job's output may have to be brought back; 0: none is
  std::string scratch;             // where on a node the farm's folder is made
  double patience_seconds = 0;     // how long a node may tell nothing
};

/// Throws InputError.
FarmPlan parse_farm_plan(const std::string& text);

/// The command of a job with its placeholders filled; those of a fixed list, and nothing else in braces is touched.
struct Placeholders {
  int job = 0;
  int attempt = 0;
  std::string input;
  std::string output;
  std::string digest;
};
std::vector<std::string> filled(const std::vector<std::string>& command, const Placeholders& values);

/// Whether the command names the file that it writes; else what it prints is its output.
bool names_output(const std::vector<std::string>& command);

}  // namespace fabricbench::farm
