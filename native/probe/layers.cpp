#include "probe/layers.hpp"

#include <algorithm>

#include "mpi_operation/operation.hpp"
#include "pattern/patterns.hpp"

namespace fabricbench {
namespace {

std::vector<std::string> parameters_of(Pattern pattern) {
  switch (facts_of(pattern).family) {
    case Family::flood:
      if (pattern == Pattern::bisection) return {"matchings", "seed"};
      return {"flows"};
    case Family::lockstep:
      return pattern == Pattern::halo ? std::vector<std::string>{"dimensions"} : std::vector<std::string>{};
    case Family::matrix:
      return {"schedule"};
    case Family::operation:
      return operation_parameters(pattern);
    case Family::pair:      // each is listed with its own
    case Family::workload:  // a program of its own runs it
      break;
  }
  return {};
}

/// One line for each pattern of two.
template <class... Each>
std::vector<PatternEntry> entries_of(PatternList<Each...>) {
  return {PatternEntry{Each::pattern, Each::smallest_message, Each::timing_member, Each::parameters()}...};
}

/// The patterns of many ranks and the operations have their parameters in common within a family.
std::vector<PatternEntry> all_entries() {
  std::vector<PatternEntry> entries = entries_of(Patterns{});
  for (std::size_t i = 0; i < names_of<Pattern>.size(); ++i) {
    const auto pattern = static_cast<Pattern>(i);
    if (std::ranges::find(entries, pattern, &PatternEntry::pattern) != entries.end()) continue;
    entries.push_back({pattern, 1, 0, parameters_of(pattern)});
  }
  return entries;
}

}  // namespace

const PatternEntry& pattern_entry(Pattern pattern) {
  static const std::vector<PatternEntry> patterns = all_entries();
  return *std::ranges::find(patterns, pattern, &PatternEntry::pattern);
}

}  // namespace fabricbench
