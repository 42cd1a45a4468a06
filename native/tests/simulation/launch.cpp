#include "simulation/launch.hpp"

#include <time.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "base/clock.hpp"
#include "core/channel.hpp"
#include "mpi_operation/timed_calls.hpp"
#include "probe/agreement.hpp"
#include "probe/doors.hpp"
#include "probe/launch.hpp"

namespace fabricbench {

// Nothing is measured: there is no door to a device.
std::span<const Door> all_doors() { return {}; }

}  // namespace fabricbench

namespace fabricbench::simulation {
namespace {

using nlohmann::json;

constexpr std::size_t samples_of_cell = 500;
constexpr std::size_t batches_of_cell = 8;
constexpr std::uint64_t batch_ns = 5'000'000;
constexpr int agreements_before = 5;

std::string host_of(int rank) { return "node" + std::to_string(100'000 + rank); }

std::string plan_text(const LaunchOptions& options) {
  std::vector<int> all(static_cast<std::size_t>(options.ranks));
  std::iota(all.begin(), all.end(), 0);
  json probes = json::array();
  const auto add = [&](const std::string& layer, const std::string& pattern, const std::vector<int>& ranks) {
    probes.push_back({{"id", probes.size()},
                      {"layer", layer},
                      {"pattern", pattern},
                      {"message_bytes", 1024},
                      {"receive", layer == "memory" ? "polling" : "library"},
                      {"ranks", ranks}});
  };
  for (const std::string& pattern : options.patterns) add("mpi", pattern, all);
  add("memory", "pingpong", {0});  // rank 0 alone: when it begins, the cell before is over
  json plan{{"schema", "fabricbench/plan/1"},    {"launch_id", "b00-simulated"}, {"token", 1},
            {"fabric", {{"name", "simulated"}}}, {"output", options.record},     {"probes", probes}};
  if (options.patience_seconds) plan["patience_seconds"] = *options.patience_seconds;
  return plan.dump();
}

RankInfo info_of(int rank) {
  std::vector<int> cpus(16);
  std::iota(cpus.begin(), cpus.end(), 0);
  return {{{"rank", rank},
           {"host", host_of(rank)},
           {"pid", 10'000 + rank},
           {"cpus", cpus},
           {"interface", "ib0"},
           {"address", "10.1.2.3"},
           {"mac", "02:00:00:00:00:01"},
           {"mtu", 1500},
           {"start_up_ns", 123'456'789}}};
}

std::uint64_t processor_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

/// What all ranks of one simulation share.
class Launch {
 public:
  explicit Launch(const LaunchOptions& options)
      : options_(options),
        text_(plan_text(options)),
        world_(options.ranks, options.network, [this](auto transport) { take_part(std::move(transport)); }) {
    // Each rank reads the plan, for which it takes as long as here; the memory of all of these plans nobody has.
    const std::uint64_t begin = processor_ns();
    plan_ = parse_plan(text_);
    reading_ns_ = processor_ns() - begin;
  }

  LaunchOutcome run() {
    world_.run();
    outcome_.left = world_.left();
    outcome_.aborted = world_.aborted();
    for (std::size_t cell = 0; cell + 1 < begun_ns_.size(); ++cell) {
      outcome_.cell_end_seconds.push_back(static_cast<double>(begun_ns_[cell + 1] - ended_ns_[cell]) * 1e-9);
    }
    return outcome_;
  }

 private:
  void take_part(std::unique_ptr<ControlTransport> transport) {
    Control control(std::move(transport));
    control.set_patience(options_.patience_seconds);
    try {
      follow(control);
    } catch (const LaunchEnded& ended) {
      control.confirm(ended);
    } catch (const std::exception& error) {
      outcome_.causes.push_back("rank " + std::to_string(control.rank()) + ": " + error.what());
      control.end_all(1, error.what());
    }
    outcome_.all_seconds = std::max(outcome_.all_seconds, static_cast<double>(world_.now_ns()) * 1e-9);
  }

  void follow(const Control& control) {
    const Channel channel(control);
    const int rank = control.rank();
    at(rank, 0, Point::begin);
    std::unique_ptr<RecordWriter> writer;
    {
      Beginning beginning;
      if (rank == 0) {
        beginning.plan_text = text_;
        writer = std::make_unique<RecordWriter>(options_.record);
      }
      beginning = channel.broadcast(beginning);
      world_.charge(reading_ns_);
    }
    const Acquaintance all = make_acquainted(channel, info_of(rank));
    GlobalClock clock;
    const LaunchContext context{.control = control,
                                .plan = plan_,
                                .clock = {},
                                .interface = {},
                                .host = host_of(rank),
                                .first_rank_on_host = all.hosts.first_rank,
                                .first_rank_on_machine = all.hosts.first_on_machine,
                                .global_clock = clock};
    const RunCell run = [&](const PlanProbe& probe, int cell, const std::function<bool()>&) {
      return take_cell(context, probe, cell);
    };
    take_cells(context, run, all, writer.get());
  }

  /// A rank's part of a cell: what its ranks say to one another while they measure; the samples are none.
  CellReport take_cell(const LaunchContext& context, const PlanProbe& probe, int cell) {
    const int rank = context.control.rank();
    begin(rank, cell);
    at(rank, cell, Point::cell);
    const CellTeam team(context.control, members_of(probe), cell);
    const Agreement agreement(team, context.host);
    CellReport report;
    for (int i = 0; i < agreements_before; ++i) {
      at(rank, cell, Point::agreement);
      agreement.on([] {});
    }
    report.findings.values["agreed_ns"] =
        static_cast<double>(agreement.common_start(static_cast<std::int64_t>(world_.now_ns())));
    const Family family = facts_of(probe.pattern).family;
    if (family == Family::operation) obey_orders(team, rank, cell);
    agreement.on([] {});
    fill(report, context, team, family);
    end(cell);
    at(rank, cell, Point::report);
    return report;
  }

  /// As a conductor's.
  void obey_orders(const CellTeam& team, int rank, int cell) {
    TeamOrders<CallOrder> orders(team);
    if (team.member() > 0) {
      while (orders.next()) {
        at(rank, cell, Point::order);
        world_.spend(batch_ns);
      }
      return;
    }
    for (std::size_t batch = 0; batch < batches_of_cell; ++batch) {
      orders.give({.phase = CallPhase::measured, .calls = samples_of_cell / batches_of_cell});
      at(rank, cell, Point::order);
      world_.spend(batch_ns + 2 * TreePlace::depth_of(team.size()) * options_.network.latency_ns);  // a reduction
    }
  }

  void fill(CellReport& report, const LaunchContext& context, const CellTeam& team, Family family) const {
    const int rank = context.control.rank();
    report.measured.time_ns.assign(family == Family::flood ? 50 : samples_of_cell, 10'000U + rank % 7);
    if (family == Family::flood) report.measured.bytes.assign(50, 65'536);
    report.findings.missed = {static_cast<std::uint32_t>(rank % 5)};
    for (const char* name : {"window_ns", "start_tolerance_ns", "back_to_back_ns", "clock_error_ns"}) {
      report.findings.values[name] = 1e6;
    }
    Traffic traffic{{"ib0", {.sent = 1'000'000, .received = 1'000'000}}, {"eth0", {.sent = 1'000, .received = 1'000}}};
    if (team.member() == 0) {
      report.outcome = {.stop = StopReason::time, .seconds = 0.1, .bytes_per_sample = 1024};
      report.interfaces = traffic;
    } else {
      report.other_hosts[context.host] = traffic;
    }
    if (family != Family::flood) return;
    for (const int other : {(rank + 1) % context.control.size(), (rank + 2) % context.control.size()}) {
      ChannelReport& channel = report.findings.channels.emplace_back();
      channel.source = rank;
      channel.destination = other;
      // Windows of 20 ms, each some messages more or fewer: as far apart as those of a busy network.
      for (int window = 0; window < 50; ++window) {
        const auto scatter = static_cast<unsigned>(rank * 31 + other * 17 + window * 389) % 1000U;
        channel.time_ns.push_back(20'000'000 + scatter * 2'000);
        channel.bytes.push_back(1'000'000 + scatter % 16U * 65'536);
      }
    }
  }

  void at(int rank, int cell, Point point) {
    if (options_.at) options_.at(world_, rank, cell, point);
  }
  void begin(int rank, int cell) {
    if (cell == 0) {
      outcome_.start_seconds = std::max(outcome_.start_seconds, static_cast<double>(world_.now_ns()) * 1e-9);
    }
    if (rank != 0) return;
    begun_ns_.resize(static_cast<std::size_t>(cell) + 1);
    begun_ns_.back() = world_.now_ns();
  }
  void end(int cell) {
    if (ended_ns_.size() <= static_cast<std::size_t>(cell)) ended_ns_.resize(static_cast<std::size_t>(cell) + 1);
    std::uint64_t& last = ended_ns_[static_cast<std::size_t>(cell)];
    last = std::max(last, world_.now_ns());
  }

  const LaunchOptions& options_;
  std::string text_;
  Plan plan_;
  std::uint64_t reading_ns_ = 0;
  LaunchOutcome outcome_;
  std::vector<std::uint64_t> begun_ns_;  // on rank 0
  std::vector<std::uint64_t> ended_ns_;  // by the last rank
  World world_;
};

}  // namespace

LaunchOutcome simulate_launch(const LaunchOptions& options) { return Launch(options).run(); }

}  // namespace fabricbench::simulation
