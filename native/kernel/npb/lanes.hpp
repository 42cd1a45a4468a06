// The vector types that programs of kernels share, for the kernels of NPB.
#pragma once

#include "kernel/simd/lanes.hpp"

namespace fabricbench::npb {

using namespace simd;

}  // namespace fabricbench::npb
