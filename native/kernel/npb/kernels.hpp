// All kernels: one line each.
#pragma once

#include <array>

#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

inline constexpr std::array<const Kernel*, 3> kernels{&bt, &lu, &sp};

}  // namespace fabricbench::npb
