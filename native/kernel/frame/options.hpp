// The command line of fabricbench-npb as a value. Reading it needs no MPI.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/interface.hpp"
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

enum class Action { run, list, help, version };

struct Options {
  Action action = Action::run;
  const Kernel* kernel = nullptr;
  Class problem = Class::S;
  std::optional<int> ranks;  // all, where it is not given
  int repetitions = 1;
  std::optional<std::string> interface;  // the one that leads into the fabric under test, for the record
  std::optional<Subnet> subnet;          // the same, found by its network
  std::string output;                    // a file, `-` for stdout, empty for none
};

/// Thrown for a wrong command line; the message says which word it is about and what is needed.
struct UsageError {
  std::string message;
};

/// Read the command line for a choice of kernels. Throws UsageError.
Options parse_options(std::span<char* const> arguments, std::span<const Kernel* const> kernels);

/// What --help prints.
extern const char* const usage_text;

/// What --list prints: each kernel with the numbers of ranks, up to 64, that it can run this class on.
std::string list_text(std::span<const Kernel* const> kernels, Class problem);

}  // namespace fabricbench::npb
