// Runs one cell on one of its ranks: opens or reuses the endpoint, agrees with the other ranks at every step, verifies,
// measures.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/clock_sync.hpp"
#include "core/control.hpp"
#include "core/plan.hpp"
#include "core/report.hpp"
#include "core/watchdog.hpp"
#include "probe/doors.hpp"
#include "probe/endpoint.hpp"
#include "probe/layers.hpp"
#include "probe/path_cache.hpp"

namespace fabricbench {

/// What is the same for all cells of a launch on this rank.
struct Surroundings {
  const Control& control;
  const Plan& plan;
  ClockInfo clock;
  std::optional<Interface> interface;
  std::string host;
  MPI_Comm data_communicator = MPI_COMM_NULL;
  GlobalClock& global_clock;
};

class CellRunner {
 public:
  explicit CellRunner(const Surroundings& surroundings)
      : surroundings_(surroundings), devices_({surroundings.interface, surroundings.data_communicator}) {}
  ~CellRunner();
  CellRunner(const CellRunner&) = delete;
  CellRunner& operator=(const CellRunner&) = delete;

  /// Take part in a cell; collective over its ranks. Never throws a Failure: it is in the report. With `is_over` it is
  /// a congestor, which goes on until that says so and asks it now and then from its first message on.
  CellReport run(const PlanProbe& probe, int ordinal, const std::function<bool()>& is_over = {});

 private:
  /// One cell on this rank, while it is measured.
  struct Cell {
    const PlanProbe& probe;
    const CellTeam& team;
    CellReport& report;
    std::function<bool()> is_over;
    const Door* door = nullptr;  // that its paths go through, and the device behind it, once both are known
    OpenDevice* device = nullptr;
  };

  void run_or_fail(Cell& cell);
  void run_pair(Cell& cell);
  void run_group(Cell& cell);
  void run_round(Cell& cell, const GroupParameters& parameters, std::size_t round, std::size_t rounds);
  void run_operation(Cell& cell);
  void run_matrix(Cell& cell);
  /// One pair of a matrix, on its two ranks.
  void run_match(Cell& cell, std::size_t partner, std::size_t round);
  void match_direction(Cell& cell, const CellTeam& pair, std::size_t round);
  /// The ranks of a cell as MPI sees them; made once for each set of ranks.
  MPI_Comm communicator_of(const CellTeam& team);
  /// Add the samples that were taken to the cell's report; with the bytes of each where they differ, or always.
  void take_samples(Cell& cell, bool always_bytes);
  /// A pattern of two over the path between them.
  void measure_pair(Cell& cell);

  /// What bounds the sleeps of sockets while messages flow; not before, for it would interrupt the meeting of peers
  /// too.
  static std::unique_ptr<Watchdog> watchdog_for(const Cell& cell);
  Task task_of(Cell& cell, std::uint32_t token, std::uint32_t& sequence);
  /// Open the paths to the peers that are not open yet, and agree with each on the next message's number.
  std::vector<Endpoint::Member> endpoints_for(Cell& cell, const CellTeam& team, const std::vector<Link>& links);
  /// The least that the sockets of these paths were granted, with what the cell found.
  static void note_granted(Cell& cell, const std::vector<Endpoint::Member>& members);
  /// The keys of the paths of these links, in their order.
  std::vector<PathCache::Key> keys_of(const Cell& cell, const CellTeam& team, const std::vector<Link>& links) const;
  /// Do something between two readings of the time and of the interfaces' counters, which the first member takes.
  void observed(Cell& cell, const std::function<void()>& action);
  /// Measure so.
  void counted(Cell& cell, const std::function<Outcome()>& action);
  /// A time that is soon, the same for all members: when a flood or the first call begins.
  std::int64_t common_start(const CellTeam& team) const;
  /// Do something that may fail here, and learn whether it failed anywhere; then every rank throws the same.
  void agree(const CellTeam& team, const std::function<void()>& action) const;
  std::string hanging(const PlanProbe& probe) const;
  CellFailure named(const Failure& failure) const;
  void prepare_samples(const Cell& cell);

  const Surroundings& surroundings_;
  DeviceSet devices_;
  PathCache paths_;  // closed before the devices that they come from
  std::map<std::vector<int>, MPI_Comm> communicators_;
  Samples samples_;
};

/// Thrown on every rank of a cell once all know of the failure.
struct AgreedFailure {
  CellFailure failure;
};

/// The ranks that take part in a probe.
std::vector<int> members_of(const PlanProbe& probe);

}  // namespace fabricbench
