// All reports of a cell at once, for tests.
#pragma once

#include <vector>

#include "core/report.hpp"

namespace fabricbench {

inline CellReport merge(const std::vector<CellReport>& reports, Family family) {
  CellMerge merge(family);
  for (const CellReport& report : reports) merge.add(report);
  return merge.finish();
}

}  // namespace fabricbench
