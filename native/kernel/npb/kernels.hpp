// All kernels: one line each.
#pragma once

#include <array>

#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

inline constexpr std::array kernels{&ep, &mg, &ft, &is};

}  // namespace fabricbench::npb
