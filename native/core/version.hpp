#pragma once

#include <string_view>

namespace fabricbench {

/// Given by CMake, which reads it from the build.
inline constexpr std::string_view version = FABRICBENCH_VERSION;

}  // namespace fabricbench
