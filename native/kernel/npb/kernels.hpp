// All kernels: one line each.
#pragma once

#include <array>

#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

inline constexpr std::array<const Kernel*, 1> kernels{
    &lu,
};

}  // namespace fabricbench::npb
