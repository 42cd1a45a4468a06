// A simulated launch: the plan told, all acquainted, cells ordered, measured by nobody, agreed on and reported, and the
// end, by the measurer's own code (probe/launch.cpp) over ranks that are simulated (world.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulation/world.hpp"

namespace fabricbench::simulation {

/// What a rank does at some point of a launch, to be overridden.
enum class Point { begin, cell, agreement, order, report };

struct LaunchOptions {
  int ranks = 2;
  Network network{};
  std::string record = "/dev/null";
  std::vector<std::string> patterns{"allreduce"};  // a cell each, of all ranks, over layer mpi
  std::optional<double> patience_seconds{};
  /// Called on each rank at each point of a cell; may hang it.
  std::function<void(World&, int rank, int cell, Point)> at{};
};

/// What came of it; times are simulated.
struct LaunchOutcome {
  double start_seconds = 0;                // until the last rank is in the first cell
  std::vector<double> cell_end_seconds{};  // of each cell: from its last rank's last sample until rank 0 goes on
  double all_seconds = 0;
  std::vector<std::string> causes{};  // what ranks said that ended the launch
  std::vector<int> left{};            // ranks that did not return
  std::optional<Aborted> aborted{};
};

LaunchOutcome simulate_launch(const LaunchOptions& options);

}  // namespace fabricbench::simulation
