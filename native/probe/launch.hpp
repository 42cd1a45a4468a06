// One launch: rank 0 reads the plan, directs the ranks cell by cell and writes the record; the others wait asleep for
// orders.
#pragma once

#include <cstdint>
#include <string>

#include "base/program.hpp"

namespace fabricbench {

/// Measure a plan. Collective over MPI_COMM_WORLD; every rank returns the same. `start_up_ns`: what MPI_Init took here.
ExitCode launch(const std::string& plan_path, std::uint64_t start_up_ns);

}  // namespace fabricbench
