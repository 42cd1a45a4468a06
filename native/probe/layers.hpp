// What the runner of cells needs to know of patterns; probe/doors.hpp has the layers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/vocabulary.hpp"

namespace fabricbench {

/// What running a pattern needs to know of it beside core/pattern_facts.hpp.
struct PatternEntry {
  Pattern pattern;
  std::size_t smallest_message;
  std::size_t timing_member;  // of a pair: the member that keeps the time
  std::vector<std::string> parameters;
};

const PatternEntry& pattern_entry(Pattern pattern);

}  // namespace fabricbench
