// A launch from its plan to its record: rank 0 reads the plan, all tell who they are, rank 0 orders cell by cell and
// joins what the ranks report, the others do what they are ordered (probe/cell_runner.hpp has a rank's part of one
// cell), and whoever cannot go on ends the launch on all of them.
#include "probe/launch.hpp"

#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/channel.hpp"
#include "core/clock_sync.hpp"
#include "core/message.hpp"
#include "core/plan.hpp"
#include "core/rank_info.hpp"
#include "core/record_writer.hpp"
#include "probe/cell_runner.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

/// Tell all other ranks.
template <Message M>
void order_all(const Channel& channel, const M& order) {
  CellTree(channel, RankList::first(channel.size())).pass_on(order);
}

// All parts that come with the reports of a cell are so many bytes at the most.
constexpr std::size_t most_pushed_bytes = std::size_t{256} << 20U;
// Of those who keep theirs, so many are asked before the first has answered: who has waited for seconds looks 50 times
// a second, and asked in turn each would cost as much.
constexpr std::size_t asked_ahead = 64;

/// What a cell's ranks hand over at its end, this rank's part of it.
class CellEnd {
 public:
  CellEnd(const Channel& channel, const CellTree& tree, const PlanProbe& probe)
      : channel_(channel), tree_(tree), family_(facts_of(probe.pattern).family), merge_(family_) {}

  /// What this rank has, which takes part.
  void add_own(CellReport report) {
    parts_ = take_parts(report, family_);
    merge_ = CellMerge(family_, std::move(report));
    is_keeper_ = is_star() || merge_.push_parts(channel_.rank(), parts_, most_pushed_bytes / tree_.size());
  }

  /// Hand over the reports of this rank and those below it; on rank 0 those of all.
  CellMerge collect() {
    return tree_.collect(std::move(merge_), [](CellMerge one, CellMerge other) {
      one.join(std::move(other));
      return one;
    });
  }

  /// Hand over the parts that this rank keeps, once rank 0 asks for them.
  void send_parts() const {
    if (!is_keeper_) return;
    channel_.receive_patiently<SendParts>(0);
    channel_.send(0, parts_);
  }

  /// Write what each rank has by itself, on rank 0: what came with the reports, then of each that keeps some.
  void write_parts(const PlanProbe& probe, const RankList& members, const CellMerge& merged,
                   RecordWriter& writer) const {
    merged.for_each_pushed([&](const CellParts& parts) { writer.write_parts(probe, parts); });
    const RankList& keepers = is_star() ? members : merged.keepers();
    const std::size_t ahead = is_star() ? 1 : asked_ahead;
    std::size_t asked = 0;
    for (std::size_t place = 0; place < keepers.size(); ++place) {
      for (; asked < std::min(place + ahead, keepers.size()); ++asked) {
        if (keepers[asked] != 0) channel_.send(keepers[asked], SendParts{});
      }
      writer.write_parts(probe, keepers[place] == 0 ? parts_ : channel_.receive<CellParts>(keepers[place]));
    }
  }

 private:
  bool is_star() const { return tree_.size() <= TreePlace::largest_star; }

  const Channel& channel_;
  const CellTree& tree_;
  Family family_;
  CellMerge merge_;
  CellParts parts_;
  bool is_keeper_ = false;
};

/// Start the congestor's ranks and wait until each has begun or failed.
void start_congestor(const Channel& channel, const CellTree& tree, int ordinal) {
  tree.pass_on(Congest{.probe = ordinal});
  for (const int below : tree.below()) channel.receive<Begun>(below);
}

/// End it; its failure if it had one.
std::optional<CellFailure> stop_congestor(const Channel& channel, const CellTree& tree, const PlanProbe& probe) {
  tree.pass_on(Stop{});
  std::optional<CellFailure> failure = CellEnd(channel, tree, congestor_probe(probe)).collect().finish().failure;
  if (failure) failure->reason = "the congestor failed: " + failure->reason;
  return failure;
}

/// Synchronise the clocks anew; on rank 0 what each rank found. Collective.
std::vector<ClockCheck> check_clocks(const LaunchContext& context) {
  return Channel(context.control).gather(context.global_clock.synchronise_again());
}

/// The same on rank 0's order, between cells.
std::vector<ClockCheck> order_check(const LaunchContext& context) {
  order_all(Channel(context.control), CheckClocks{});
  return check_clocks(context);
}

/// What the clocks' disagreement may be of a call's time, by which ranks begin too early or too late: as much as what
/// is asked of two ways to measure the same (docs/collectives.md). It is what two synchronisations tell apart, less
/// what chance may have done, not their bound, within which no exchange of messages can tell.
constexpr double most_clock_shift = 0.05;

/// Note what the clocks were off when the cell ended; one whose calls began by clocks that disagreed has failed.
void judge_clocks(const LaunchContext& context, const PlanProbe& probe, CellReport& report) {
  ClockSpread spread;
  if (!context.global_clock.is_one_clock()) {
    const std::vector<ClockCheck> all = order_check(context);
    std::vector<ClockCheck> members;
    for (const int rank : members_of(probe).expanded()) members.push_back(all[static_cast<std::size_t>(rank)]);
    spread = spread_of(members);
  }
  std::map<std::string, double>& values = report.findings.values;
  values["clock_error_ns"] = std::max(values["clock_error_ns"], spread.error_ns);
  values["clock_shift_ns"] = spread.shift_ns;
  values["clock_shift_noise_ns"] = spread.noise_ns;
  if (report.failure || facts_of(probe.pattern).family != Family::operation) return;
  const double call_ns = values["back_to_back_ns"];
  if (spread.shift_ns - spread.noise_ns <= most_clock_shift * call_ns) return;
  report.failure = CellFailure{
      FailureCode::error,
      "the clocks of the ranks shifted by " + std::to_string(std::llround(spread.shift_ns)) +
          " ns while it was measured, more than 5 % of the " + std::to_string(std::llround(call_ns)) +
          " ns of a call back to back: calls did not begin together. Give the cell less time, or is a clock of some "
          "node being set (NTP, PTP) or the machine busy?"};
}

CellReport run_cell(const RunCell& run, const PlanProbe& probe, int ordinal) { return run(probe, ordinal, {}); }

void direct_cell(const LaunchContext& context, const RunCell& run, int ordinal, RecordWriter& writer) {
  const Channel channel(context.control);
  const PlanProbe& probe = context.plan.probes[static_cast<std::size_t>(ordinal)];
  const RankList members = members_of(probe);
  std::optional<CellTree> congestor;
  if (probe.congestor) start_congestor(channel, congestor.emplace(channel, RankList(probe.congestor->ranks)), ordinal);
  const CellTree tree(channel, members);
  tree.pass_on(Measure{.probe = ordinal});
  CellEnd end(channel, tree, probe);
  if (members.place_of(0)) end.add_own(run_cell(run, probe, ordinal));
  CellMerge merged = end.collect();
  CellReport report = merged.finish();
  if (facts_of(probe.pattern).family == Family::flood) {
    constexpr std::uint64_t messages_of_each_channel = 4;
    join_windows(report, messages_of_each_channel * report.outcome.channels * probe.message_bytes);
  }
  if (congestor) {
    const std::optional<CellFailure> failure = stop_congestor(channel, *congestor, probe);
    if (!report.failure) report.failure = failure;
  }
  writer.open_cell(probe, report);
  end.write_parts(probe, members, merged, writer);
  if (needs_global_clock(probe)) judge_clocks(context, probe, report);
  writer.close_cell(probe, report);
}

void write_clocks(RecordWriter& writer, const std::vector<ClockModel>& clocks, std::string_view phase) {
  for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
    writer.write_clock(clocks[rank], static_cast<int>(rank), phase);
  }
}

/// The clocks after all cells, each with what it had shifted since the synchronisation before.
void write_last_clocks(const LaunchContext& context, RecordWriter& writer) {
  std::vector<ClockModel> clocks;
  for (const ClockCheck& check : order_check(context)) {
    clocks.push_back(check.model);
    if (!check.model.is_shared) clocks.back().error_ns += std::abs(check.shift_ns);
  }
  write_clocks(writer, clocks, "end");
}

/// Renew the clocks before a cell if they are old by now.
void refresh_clocks(const LaunchContext& context, const PlanProbe& probe) {
  const GlobalClock& clock = context.global_clock;
  if (needs_global_clock(probe) && !clock.is_one_clock() && clock.is_due()) order_check(context);
}

/// The probe that an order means. Throws ControlError where the plan has none there.
const PlanProbe& probe_of(const Plan& plan, int ordinal) {
  if (ordinal < 0 || ordinal >= std::ssize(plan.probes)) {
    throw ControlError("rank 0 orders probe " + std::to_string(ordinal) + " of a plan of " +
                       std::to_string(plan.probes.size()));
  }
  return plan.probes[static_cast<std::size_t>(ordinal)];
}

/// Pass on that a cell is to be measured, take part in it, and hand over what there is.
void measure(const Channel& channel, const RunCell& run, const PlanProbe& probe, int ordinal) {
  const CellTree tree(channel, members_of(probe));
  tree.pass_on(Measure{.probe = ordinal});
  CellEnd end(channel, tree, probe);
  end.add_own(run_cell(run, probe, ordinal));
  end.collect();
  end.send_parts();
}

/// What a congestor's rank and those below it in its tree say while it congests: that all of them have begun, and that
/// it is enough.
class CongestorSigns {
 public:
  CongestorSigns(const Channel& channel, const CellTree& tree)
      : channel_(channel), tree_(tree), not_begun_(tree.below()) {}

  /// This rank has begun, or never will.
  void begin() { has_begun_ = true; }
  /// Look what has come, and pass it on; whether it is enough.
  bool look() {
    std::erase_if(not_begun_, [&](int below) { return channel_.try_receive<Begun>(below).has_value(); });
    say_begun();
    if (!is_over_ && channel_.try_receive<Stop>(tree_.above())) stop();
    return is_over_;
  }
  /// Wait until all below have begun, and until it is enough.
  void wait() {
    for (const int below : std::exchange(not_begun_, {})) channel_.receive<Begun>(below);
    say_begun();
    if (is_over_) return;
    channel_.receive_patiently<Stop>(tree_.above());
    stop();
  }

 private:
  void say_begun() {
    if (is_said_ || !has_begun_ || !not_begun_.empty()) return;
    is_said_ = true;
    channel_.send(tree_.above(), Begun{});
  }
  void stop() {
    is_over_ = true;
    tree_.pass_on(Stop{});
  }

  const Channel& channel_;
  const CellTree& tree_;
  std::vector<int> not_begun_;
  bool has_begun_ = false;
  bool is_said_ = false;
  bool is_over_ = false;
};

/// Congest the fabric until rank 0 says that it is enough, and report.
void congest(const Channel& channel, const RunCell& run, const PlanProbe& probe, int ordinal) {
  // From its first message to when it is taken as going: queues fill, and byte streams find their pace.
  constexpr std::uint64_t settling_ns = 150'000'000;
  const PlanProbe own = congestor_probe(probe);
  const CellTree tree(channel, RankList(probe.congestor->ranks));
  tree.pass_on(Congest{.probe = ordinal});
  CongestorSigns signs(channel, tree);
  std::uint64_t first_look = 0;
  const auto ask = [&] {
    const std::uint64_t now = Clock::now();
    if (first_look == 0) first_look = now;
    if (now - first_look > settling_ns) signs.begin();
    return signs.look();
  };
  CellReport report;
  if (!probe.congestor->is_idle) report = run(own, ordinal, ask);
  signs.begin();  // it may be idle, or have failed before
  signs.wait();
  CellEnd end(channel, tree, own);
  take_parts(report, facts_of(own.pattern).family);  // nobody asks for them
  end.add_own(std::move(report));
  end.collect();
}

/// Have the whole plan measured and write the record. On rank 0; `all` and `clocks` are what all said of themselves,
/// no clocks where no probe needs them.
void direct(const LaunchContext& context, const RunCell& run, const Acquaintance& all,
            const std::vector<ClockModel>& clocks, RecordWriter& writer) {
  writer.write_header(context.plan, all.ranks, context.clock, mpi_library(), all.not_counted);
  write_clocks(writer, clocks, "begin");
  for (int i = 0; i < static_cast<int>(context.plan.probes.size()); ++i) {
    refresh_clocks(context, context.plan.probes[static_cast<std::size_t>(i)]);
    direct_cell(context, run, i, writer);
  }
  if (!clocks.empty()) write_last_clocks(context, writer);
  writer.write_footer();
  order_all(Channel(context.control), Finish{});
}

/// Do what rank 0 orders, whoever passes it on, until it says that there is no more. On the other ranks.
void obey(const LaunchContext& context, const RunCell& run) {
  const Channel channel(context.control);
  for (;;) {
    const auto order = channel.receive_of_any<Measure, Congest, CheckClocks, Finish>();
    if (const auto* cell = std::get_if<Measure>(&order)) {
      measure(channel, run, probe_of(context.plan, cell->probe), cell->probe);
    } else if (const auto* congestor = std::get_if<Congest>(&order)) {
      congest(channel, run, probe_of(context.plan, congestor->probe), congestor->probe);
    } else if (std::holds_alternative<CheckClocks>(order)) {
      order_all(channel, CheckClocks{});
      check_clocks(context);
    } else {
      return order_all(channel, Finish{});
    }
  }
}

// Rank 0 has to read the plan, from a file system that may not answer.
constexpr double seconds_to_read_plan = 60;

RankInfo own_info(const Control& control, const std::optional<Interface>& interface, std::uint64_t start_up_ns,
                  const std::vector<NotCounted>& not_counted) {
  json info = rank_info(control.rank(), interface);
  info["start_up_ns"] = start_up_ns;
  if (!not_counted.empty()) info["not_counted"] = to_record(not_counted);
  return {std::move(info)};
}

/// What this rank's process counts; events of the processor where the plan asks for them.
RankCounters own_counters(const Plan& plan) {
  return plan.hardware_counters ? RankCounters(HardwareEvents::open_by_system) : RankCounters();
}

HostsOfRanks hosts_of(const std::vector<json>& ranks) {
  std::map<std::string, int> first_on_host;
  std::map<std::string, int> first_on_machine;
  HostsOfRanks hosts;
  int rank = 0;
  for (const json& info : ranks) {
    const std::string host = info.at("host");
    hosts.first_rank.push_back(first_on_host.try_emplace(host, rank).first->second);
    hosts.first_on_machine.push_back(first_on_machine.try_emplace(info.value("machine", host), rank).first->second);
    ++rank;
  }
  return hosts;
}

std::string read_plan_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw InputError(path, std::string("cannot be read (") + std::strerror(errno) + ")");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What rank 0 finds before the first cell, for all to hear; opens the record where there is a plan.
Beginning begin(const std::string& plan_path, int world_size, std::unique_ptr<RecordWriter>& writer) {
  Beginning beginning;
  try {
    beginning.plan_text = read_plan_text(plan_path);
    const Plan plan = parse_plan(beginning.plan_text);
    check_ranks(plan, world_size);
    // Beside the plan, for the working directory is one that all nodes have; - is stdout.
    const std::filesystem::path output = plan.output;
    const bool is_stdout = output == "-";
    writer = std::make_unique<RecordWriter>(
        is_stdout ? plan.output : (std::filesystem::path(plan_path).parent_path() / output).string());
  } catch (const InputError& error) {
    std::fprintf(stderr, "fabricbench-probe: the plan cannot be followed: %s\n", error.what());
    beginning.exit_code = static_cast<int>(ExitCode::bad_input);
  } catch (const OutputError& error) {
    std::fprintf(stderr, "fabricbench-probe: %s\n", error.what());
    beginning.exit_code = static_cast<int>(ExitCode::environment);
  }
  return beginning;
}

/// This rank's interface in the fabric. FABRICBENCH_INTERFACE names it where a host has several in one subnet.
std::optional<Interface> own_interface(const PlanFabric& fabric) {
  const char* own = std::getenv("FABRICBENCH_INTERFACE");
  return find_interface(own != nullptr ? std::optional<std::string>(own) : fabric.interface, fabric.subnet);
}

bool needs_clocks(const Plan& plan) { return std::ranges::any_of(plan.probes, needs_global_clock); }

void follow_plan(Control& control, const Plan& plan, RecordWriter* writer, std::uint64_t start_up_ns) {
  control.set_patience(plan.patience_seconds);
  MPI_Comm data = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &data);
  MPI_Comm_set_errhandler(data, MPI_ERRORS_RETURN);  // what fails there fails its cell
  const std::optional<Interface> interface = own_interface(plan.fabric);
  LaunchCounters counters{.rank = own_counters(plan), .host = HostCounters(interface ? interface->name : "")};
  const Acquaintance all =
      make_acquainted(Channel(control), own_info(control, interface, start_up_ns, counters.not_counted()));
  GlobalClock global_clock = needs_clocks(plan) ? GlobalClock(control, data, clock_identity()) : GlobalClock();
  const LaunchContext context{.control = control,
                              .plan = plan,
                              .clock = measure_clock(),
                              .interface = interface,
                              .host = host_name(),
                              .first_rank_on_host = all.hosts.first_rank,
                              .first_rank_on_machine = all.hosts.first_on_machine,
                              .data_communicator = data,
                              .global_clock = global_clock,
                              .counters = &counters};
  {
    CellRunner runner(context);
    const RunCell run = [&](const PlanProbe& probe, int ordinal, const std::function<bool()>& is_over) {
      return runner.run(probe, ordinal, is_over);
    };
    take_cells(context, run, all, writer);
  }
  MPI_Comm_free(&data);
}

ExitCode read_and_follow_plan(Control& control, const std::string& plan_path, std::uint64_t start_up_ns) {
  std::unique_ptr<RecordWriter> writer;
  Beginning beginning;
  if (control.rank() == 0) beginning = begin(plan_path, control.size(), writer);
  beginning = Channel(control).broadcast(beginning);
  const auto exit = static_cast<ExitCode>(beginning.exit_code);
  if (exit != ExitCode::done) return exit;
  const Plan plan = parse_plan(beginning.plan_text);
  follow_plan(control, plan, writer.get(), start_up_ns);
  return ExitCode::done;
}

std::string who_cannot_go_on(const Control& control) {
  return "rank " + std::to_string(control.rank()) + " on " + host_name() + " cannot go on: ";
}

/// Say why the launch ends here, and end it on every rank.
ExitCode end_launch(Control& control, ExitCode exit, const std::string& cause) {
  std::fprintf(stderr, "fabricbench-probe: %s\n", cause.c_str());
  control.end_all(static_cast<int>(exit), cause);
  return exit;
}

}  // namespace

Acquaintance make_acquainted(const Channel& channel, const RankInfo& own) {
  Acquaintance all;
  UncountedOfRanks uncounted;
  for (RankInfo& rank : channel.gather(own)) {
    if (const auto told = rank.info.find("not_counted"); told != rank.info.end()) {
      uncounted.add(static_cast<int>(all.ranks.size()), *told);
      rank.info.erase(told);
    }
    all.ranks.push_back(std::move(rank.info));
  }
  all.not_counted = uncounted.to_record();
  all.hosts = channel.broadcast(hosts_of(all.ranks));
  return all;
}

void take_cells(const LaunchContext& context, const RunCell& run, const Acquaintance& all, RecordWriter* writer) {
  std::vector<ClockModel> clocks;
  if (needs_clocks(context.plan)) clocks = Channel(context.control).gather(context.global_clock.model());
  context.control.rank() == 0 ? direct(context, run, all, clocks, *writer) : obey(context, run);
}

ExitCode launch(const std::string& plan_path, std::uint64_t start_up_ns) {
  // Short sleeps of the control plane are to be short: the default slack would add 50 us to each.
  prctl(PR_SET_TIMERSLACK, 1000);
  Control control;
  control.set_patience(seconds_to_read_plan);
  try {
    return read_and_follow_plan(control, plan_path, start_up_ns);
  } catch (const LaunchEnded& ended) {
    if (ended.failure_here()) {
      std::fprintf(stderr, "fabricbench-probe: %s; then rank %d ended the launch\n", ended.failure_here()->c_str(),
                   ended.rank());
    }
    control.confirm(ended);
    return static_cast<ExitCode>(ended.exit_code());
  } catch (const OutputError& error) {
    return end_launch(control, ExitCode::environment, error.what());
  } catch (const std::bad_alloc&) {
    return end_launch(control, ExitCode::failed, who_cannot_go_on(control) + "out of memory: take fewer samples");
  } catch (const std::exception& error) {
    return end_launch(control, ExitCode::failed, who_cannot_go_on(control) + error.what());
  }
}

}  // namespace fabricbench
