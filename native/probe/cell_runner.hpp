// The walk of one rank through a cell: open or reuse its paths, verify, measure, report. What may fail on any rank the
// ranks agree on (probe/agreement.hpp); what stays open from cell to cell is kept apart (probe/path_cache.hpp).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/channel.hpp"
#include "core/clock_sync.hpp"
#include "core/counters.hpp"
#include "core/plan.hpp"
#include "core/port_state.hpp"
#include "core/report.hpp"
#include "core/watchdog.hpp"
#include "pattern/channels.hpp"
#include "probe/agreement.hpp"
#include "probe/doors.hpp"
#include "probe/path_cache.hpp"

namespace fabricbench {

/// What is the same for all cells of a launch on this rank.
struct LaunchContext {
  const Control& control;
  const Plan& plan;
  ClockInfo clock;
  std::optional<Interface> interface;
  std::string host;
  RankList first_rank_on_host;     // of each rank: the first rank on the same host
  RankList first_rank_on_machine;  // and on the same machine
  MPI_Comm data_communicator = MPI_COMM_NULL;
  GlobalClock& global_clock;
  LaunchCounters* counters = nullptr;  // null where nobody measures
};

class CellRunner {
 public:
  explicit CellRunner(const LaunchContext& context)
      : context_(context),
        devices_({context.interface, context.data_communicator, context.plan.fabric.rdma}),
        ports_(find_ports(context.interface, context.plan.fabric.rdma, above_)) {}
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
    const Agreement& agreement;
    CellReport& report;
    std::function<bool()> is_over;
    const Door* door = nullptr;  // that its paths go through, and the device behind it, once both are known
    OpenDevice* device = nullptr;
    /// Whether this rank reads what its host counts: the first of the cell's ranks there does.
    bool reads_host = false;
    bool reads_machine = false;
    bool is_counted = false;  // what its ranks' processes, hosts and machines count is reported, by this rank
    bool is_observed = true;  // not a pair of a matrix, which is observed as a whole
    Traffic traffic_before{};
    PortState ports_before{};
  };

  void run_or_fail(Cell& cell);
  void run_pair(Cell& cell);
  void run_group(Cell& cell);
  void run_round(Cell& cell, const GroupParameters& parameters, std::size_t round, std::size_t rounds);
  void run_operation(Cell& cell);
  void run_matrix(Cell& cell);
  /// The first member's part in the turns of a matrix, and that of the others.
  void direct_turns(Cell& cell, const PairSchedule& schedule);
  void obey_turns(Cell& cell, const PairSchedule& schedule);
  class TurnWay;
  /// One turn of a matrix, on a member and on those that hear of it from there.
  void take_turn(Cell& cell, const PairSchedule& schedule, const TurnWay& way, const Turn& turn);
  /// What becomes of a path that has carried its cell: it stays for the next one, or is closed. A rank of a matrix has
  /// a path to each other in its turn; of raw and packet sockets, each that stays open is asked about every packet.
  enum class PathEnd { kept, closed };
  /// One pair of a matrix, on its two ranks.
  void run_match(Cell& cell, std::size_t partner, std::size_t round);
  void match_direction(Cell& cell, const CellTeam& pair, std::size_t round, PathEnd path_end);
  /// The ranks of a cell as MPI sees them; made once for each set of ranks.
  MPI_Comm communicator_of(const CellTeam& team);
  /// Add the samples that were taken to the cell's report; with the bytes of each where they differ, or always.
  void take_samples(Cell& cell, bool always_bytes);
  /// A pattern of two over the path between them.
  void measure_pair(Cell& cell, PathEnd path_end);
  /// A pattern that every rank of the cell has built with all its buffers, after messages have been verified where the
  /// cell asks for that. Null on a rank that builds none.
  using Preparing = std::function<std::unique_ptr<Prepared>()>;
  static std::unique_ptr<Prepared> prepared(const Cell& cell, const Preparing& verification, const Preparing& pattern);

  /// What bounds the sleeps of sockets while messages flow; not before, for it would interrupt the meeting of peers
  /// too.
  static std::unique_ptr<Watchdog> watchdog_for(const Cell& cell);
  Task task_of(Cell& cell, std::uint32_t token, std::uint32_t& sequence);
  /// The paths of these links, open on both ends.
  std::vector<Endpoint::Member> endpoints_for(Cell& cell, const std::vector<Link>& links);
  /// The least that the sockets of these paths were granted, with what the cell found.
  static void note_granted(Cell& cell, const std::vector<Endpoint::Member>& members);
  /// How this rank is attached by RDMA over these paths.
  void note_attachment(Cell& cell, const std::vector<Endpoint::Member>& members) const;
  /// The keys of the paths of these links, in their order.
  static std::vector<PathCache::Key> keys_of(const Cell& cell, const std::vector<Link>& links);
  /// Do something between two readings of what hosts and machines count, and of the time and of the interfaces'
  /// counters, which the first member takes.
  void observed(Cell& cell, const std::function<void()>& measure);
  void with_traffic(Cell& cell, const std::function<void()>& action);
  /// Measure between two readings of what this rank's process counts.
  Outcome counted(Cell& cell, const std::function<Outcome()>& measure);
  /// A time that is soon, the same for all members: when a flood or the first call begins.
  std::int64_t common_start(const Cell& cell) const;
  std::string hanging(const PlanProbe& probe) const;
  void prepare_samples(const Cell& cell);
  /// Whether no earlier rank of a cell is on this rank's host or machine, by the first rank on each.
  static bool is_first_there(const CellTeam& team, const RankList& first_there);
  /// Read what this host has counted so far, if this rank is to.
  void read_host(Cell& cell) const;
  /// Report what the cell changed at the fabric's ports on this host, and what its interfaces carried meanwhile.
  void note_host(Cell& cell);

  const LaunchContext& context_;
  DeviceSet devices_;
  InterfacesAbove above_;
  FabricPorts ports_;
  PathCache paths_;  // closed before the devices that they come from
  std::map<RankList, MPI_Comm> communicators_;
  Samples samples_;
};

/// The member that keeps the time of a pattern of two ranks, through a door.
std::size_t timing_member_of(Pattern pattern, const Door& door);

/// The ranks that take part in a probe.
RankList members_of(const PlanProbe& probe);

}  // namespace fabricbench
