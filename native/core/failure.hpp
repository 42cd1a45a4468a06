// What keeps one cell from being measured. A failure ends its cell, never the launch.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/vocabulary.hpp"

namespace fabricbench {

/// Thrown on the rank that cannot go on; all ranks of the cell agree on it over the control plane.
class Failure : public std::runtime_error {
 public:
  Failure(FailureCode code, const std::string& reason) : std::runtime_error(reason), code_(code) {}
  FailureCode code() const { return code_; }

 private:
  FailureCode code_;
};

/// Throw the Failure that errno stands for: which call was refused, why, and what to do about it.
/// `call` reads like "socket(AF_PACKET)"; `advice` replaces the general advice for that errno.
[[noreturn]] void fail_with_errno(std::string_view call, std::string_view advice = {});
[[noreturn]] void fail_with_errno(int error_number, std::string_view call, std::string_view advice = {});

}  // namespace fabricbench
