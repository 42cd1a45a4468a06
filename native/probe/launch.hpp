// One launch: rank 0 reads the plan, directs the ranks cell by cell and writes the record; the others wait asleep for
// orders.
#pragma once

#include <string>

namespace fabricbench {

/// Exit codes, which scripts rely on.
enum class Exit { done = 0, bad_plan = 2, environment = 3 };

/// Measure a plan. Collective over MPI_COMM_WORLD; every rank returns the same.
Exit launch(const std::string& plan_path);

}  // namespace fabricbench
