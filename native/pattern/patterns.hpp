// All patterns of two ranks: one line each. Those of many are told apart in pattern/channels.cpp.
#pragma once

#include "pattern/burst.hpp"
#include "pattern/oneway.hpp"
#include "pattern/paced.hpp"
#include "pattern/pingpong.hpp"
#include "pattern/stream.hpp"

namespace fabricbench {

template <class... Each>
struct PatternList {};

using Patterns = PatternList<Pingpong,  //
                             Oneway,    //
                             Paced,     //
                             Burst,     //
                             Stream>;

}  // namespace fabricbench
