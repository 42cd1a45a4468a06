// What can stop the switch, with the exit code it ends with.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace fabricbench::emulated_switch {

class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// The configuration is wrong: exit code 2.
class ConfigError : public Failure {
 public:
  explicit ConfigError(const std::string& message) : Failure(2, message) {}
};

/// The machine lacks an interface, a permission or memory: exit code 3.
class EnvironmentLacks : public Failure {
 public:
  explicit EnvironmentLacks(const std::string& message) : Failure(3, message) {}

  /// Says what failed and why, as errno has it.
  static EnvironmentLacks from_errno(const std::string& what) {
    const int code = errno;
    return EnvironmentLacks(what + ": " + std::strerror(code) +
                            (code == EPERM || code == EACCES ? " (needs CAP_NET_RAW in this network namespace)" : ""));
  }
};

}  // namespace fabricbench::emulated_switch
