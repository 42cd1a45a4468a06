// What programs throw: a Failure where the system refuses something, which ends one cell of a launch, or a program that
// has no cells; input that cannot be followed; output that cannot be kept.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/vocabulary.hpp"

namespace fabricbench {

/// In a cell, thrown on the rank that cannot go on; all ranks of the cell agree on it over the control plane.
class Failure : public std::runtime_error {
 public:
  Failure(FailureCode code, const std::string& reason) : std::runtime_error(reason), code_(code) {}
  FailureCode code() const { return code_; }

 private:
  FailureCode code_;
};

/// A plan, a configuration or a command line that cannot be followed. The message says where it is wrong (a JSON path,
/// an option), what was found and what is needed.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  InputError(const std::string& path, const std::string& problem) : std::runtime_error(path + ": " + problem) {}
};

/// The output cannot be opened or written: nothing that is measured from here on would be kept.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throw the Failure that errno stands for: which call was refused, why, and what to do about it.
/// `call` reads like "socket(AF_PACKET)"; `advice` replaces the general advice for that errno.
[[noreturn]] void fail_with_errno(std::string_view call, std::string_view advice = {});
[[noreturn]] void fail_with_errno(int error_number, std::string_view call, std::string_view advice = {});

}  // namespace fabricbench
