// Which of its builds a program runs as. Kernels are compiled for the baseline of the processor family and once more
// for each level above it, x86-64-v3 (AVX2, FMA) and x86-64-v4 (AVX-512), as programs of their own: NAME and
// NAME-LEVEL. Code of two levels in one program would share the inline functions of the standard library, of which the
// linker keeps one, perhaps that of the highest level. People start NAME, which goes on as the best of them that its
// processor runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fabricbench::kernel {

/// Of the program that this is linked into, as CMake compiled it: "x86-64-v3", "native", on other families "aarch64".
extern const std::string_view compiled_level;

/// Whether there is no other build of this program: whatever level is asked for, it runs as it is.
extern const bool has_one_level;

/// Holds all nodes to one level, so that they compute alike: the environment variable with its name.
inline constexpr const char* level_variable = "FABRICBENCH_PROCESSOR_LEVEL";

/// Go on as the program of the level that is asked for, else of the best that is there and that this processor runs.
/// Comes back where that is this program, or with why there is none. To be called before MPI knows of this process.
std::optional<std::string> take_level(char** argv);

/// What --help says of it; empty for a program that has one level.
std::string level_words();

}  // namespace fabricbench::kernel
