// The command line of fabricbench-linkdelay as a value.
#pragma once

#include <cstdint>
#include <string>

namespace fabricbench::linkdelay {

struct Options {
  std::string from;  // a PID, or the path of a network namespace
  std::string to;
  std::string source;  // IPv4 addresses
  std::string destination;
  std::size_t bytes = 64;  // UDP payload
  int count = 1000;
  int warmup = 100;
  int interval_us = 200;
};

/// Thrown for a wrong command line; what() says which option and what it needs.
struct UsageError {
  std::string message;
};

extern const char* const kUsage;

Options parse_options(int argc, char** argv);

}  // namespace fabricbench::linkdelay
