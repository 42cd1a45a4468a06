// What every program of ours has: a version, and exit codes that scripts rely on.
#pragma once

#include <string_view>

namespace fabricbench {

/// Given by CMake, which reads it from the build.
inline constexpr std::string_view version = FABRICBENCH_VERSION;

/// `bad_input`: a plan, a configuration or a command line that cannot be followed. `environment`: something is missing
/// or refused here, an interface, a permission, room on the disk.
enum class ExitCode { done = 0, failed = 1, bad_input = 2, environment = 3 };

}  // namespace fabricbench
