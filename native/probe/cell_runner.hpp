// Runs one cell on one of its ranks: opens or reuses the endpoint, agrees with the other ranks at every step, verifies,
// measures.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/clock.hpp"
#include "core/control.hpp"
#include "core/plan.hpp"
#include "core/report.hpp"
#include "probe/endpoint.hpp"
#include "probe/layers.hpp"

namespace fabricbench {

/// What is the same for all cells of a launch on this rank.
struct Surroundings {
  const Control& control;
  const Plan& plan;
  ClockInfo clock;
  std::optional<Interface> interface;
  std::string host;
  MPI_Comm data_communicator = MPI_COMM_NULL;
};

class CellRunner {
 public:
  explicit CellRunner(const Surroundings& surroundings) : surroundings_(surroundings) {}

  /// Take part in a cell; collective over its ranks. Never throws a Failure: it is in the report.
  CellReport run(const PlanProbe& probe, int ordinal);

 private:
  // Layer, peer, how its receiver waits: endpoints stay open from cell to cell.
  using Key = std::tuple<Layer, int, Receive>;

  void run_or_fail(const PlanProbe& probe, const CellTeam& team, CellReport& report);
  void measure(const PlanProbe& probe, const CellTeam& team, Endpoint& endpoint, CellReport& report);
  Endpoint& endpoint_for(const PlanProbe& probe, const CellTeam& team, const LayerEntry& layer, Receive receive);
  /// Do something that may fail here, and learn whether it failed anywhere; then every rank throws the same.
  std::vector<nlohmann::json> agree(const CellTeam& team, const std::function<nlohmann::json()>& action) const;
  CellFailure named(const Failure& failure) const;
  void prepare_samples(const PlanProbe& probe, std::size_t member);

  const Surroundings& surroundings_;
  std::map<Key, std::unique_ptr<Endpoint>> endpoints_;
  Samples samples_;
};

/// The ranks that take part in a probe.
std::vector<int> members_of(const PlanProbe& probe);

}  // namespace fabricbench
