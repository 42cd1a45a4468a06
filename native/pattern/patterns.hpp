// All patterns: one line each.
#pragma once

#include "pattern/pingpong.hpp"
#include "pattern/stream.hpp"

namespace fabricbench {

template <class... Each>
struct PatternList {};

using Patterns = PatternList<Pingpong,  //
                             Stream>;

}  // namespace fabricbench
