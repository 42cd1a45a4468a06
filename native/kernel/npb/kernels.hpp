// All kernels: one line each.
#pragma once

#include <array>

#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

inline constexpr std::array kernels{
    &cg,
    &ep,
    &is,
};

}  // namespace fabricbench::npb
