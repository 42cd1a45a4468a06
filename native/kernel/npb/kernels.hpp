// All kernels: one line each.
#pragma once

#include <array>

#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

inline constexpr std::array kernels{&ep, &mg, &cg, &ft, &is, &lu, &sp, &bt};

}  // namespace fabricbench::npb
