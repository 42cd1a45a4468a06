// The command line of a program of kernels as a value. Reading it needs no MPI.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kernel/frame/kernel.hpp"

namespace fabricbench::kernel {

enum class Action { run, list, help, mpi, version };

struct Options {
  Action action = Action::run;
  const Kernel* kernel = nullptr;
  std::unique_ptr<const Problem> problem;  // of that kernel, to be run
  Arguments arguments;
  std::optional<int> ranks;  // all, where it is not given
  int repetitions = 1;
  std::string output;  // a file, `-` for stdout, empty for none
};

/// Read the command line of a program, which must outlive what is returned. Throws UsageError.
Options parse_options(const Program& program, std::span<char* const> words);

/// What --help prints.
std::string usage_text(const Program& program);

/// What --list prints: each kernel with the numbers of ranks, up to 64, that it can run this problem on. Throws
/// UsageError.
std::string list_text(const Program& program, const Arguments& arguments);

}  // namespace fabricbench::kernel
