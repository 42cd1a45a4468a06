// What every program of ours has: a version, and exit codes that scripts rely on.
#pragma once

#include <string_view>

namespace fabricbench {

/// Given by CMake, which reads it from the build.
inline constexpr std::string_view version = FABRICBENCH_VERSION;

/// `bad_input`: a plan, a configuration or a command line that cannot be followed. `environment`: something is missing
/// or refused here, an interface, a permission, room on the disk.
enum class ExitCode { done = 0, failed = 1, bad_input = 2, environment = 3 };

/// What is to be said where a process finds itself alone and was to be one of several.
inline constexpr std::string_view why_alone =
    "; where several were started, each takes itself for the only one, because the starter does not speak the PMI of "
    "this MPI library: start it by that MPI's own mpiexec, or name the plugin that it speaks (srun --mpi=pmix or pmi2)";

}  // namespace fabricbench
