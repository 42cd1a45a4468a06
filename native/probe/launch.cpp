#include "probe/launch.hpp"

#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "core/clock_sync.hpp"
#include "core/control.hpp"
#include "core/plan.hpp"
#include "core/record_writer.hpp"
#include "core/whereabouts.hpp"
#include "mpi_operation/operation.hpp"
#include "probe/cell_runner.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

// Orders go from rank 0 to the others: the position of a probe in the plan, or that there is no more.
constexpr int order_tag = 0;
constexpr int report_tag = 32001;
constexpr int begun_tag = 32002;
constexpr int stop_tag = 32003;
constexpr int parts_tag = 32004;
constexpr int no_more = -1;
constexpr int clock_check = -2;

// Rank 0 has to read the plan, from a file system that may not answer.
constexpr double seconds_to_read_plan = 60;

struct Order {
  int probe = no_more;
  bool is_congestor = false;
};

json rank_info(const Surroundings& surroundings, std::uint64_t start_up_ns) {
  json info = whereabouts(surroundings.control.rank(), surroundings.interface);
  info["start_up_ns"] = start_up_ns;
  return info;
}

std::string read_plan_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw PlanError(path, std::string("cannot be read (") + std::strerror(errno) + ")");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What rank 0 finds before the first cell, told to all: the plan, or why there is none.
struct Beginning {
  Exit exit = Exit::done;
  std::string plan_text;
  std::unique_ptr<RecordWriter> writer;
};

Beginning begin(const std::string& plan_path, int world_size) {
  Beginning beginning;
  try {
    beginning.plan_text = read_plan_text(plan_path);
    const Plan plan = parse_plan(beginning.plan_text);
    check_ranks(plan, world_size);
    // Beside the plan, for the working directory is one that all nodes have; - is stdout.
    const std::filesystem::path output = plan.output;
    const bool is_stdout = output == "-";
    beginning.writer = std::make_unique<RecordWriter>(
        is_stdout ? plan.output : (std::filesystem::path(plan_path).parent_path() / output).string());
  } catch (const PlanError& error) {
    std::fprintf(stderr, "fabricbench-probe: the plan cannot be followed: %s\n", error.what());
    beginning.exit = Exit::bad_plan;
  } catch (const OutputError& error) {
    std::fprintf(stderr, "fabricbench-probe: %s\n", error.what());
    beginning.exit = Exit::environment;
  }
  return beginning;
}

void send_order(const Control& control, int to, Order order) { control.send(to, order_tag, encode(order)); }

/// A rank's report, its own one or one that is sent.
CellReport report_of(const Control& control, int member, const std::optional<CellReport>& own) {
  return member == 0 ? *own : unpack_report(control.receive(member, report_tag));
}

/// Start the congestor's ranks and wait until each has begun or failed.
void start_congestor(const Control& control, const PlanCongestor& congestor, int ordinal) {
  for (const int rank : congestor.ranks) send_order(control, rank, {.probe = ordinal, .is_congestor = true});
  for (const int rank : congestor.ranks) control.receive(rank, begun_tag);
}

/// End it; its failure if it had one.
std::optional<CellFailure> stop_congestor(const Control& control, const PlanCongestor& congestor) {
  for (const int rank : congestor.ranks) control.send(rank, stop_tag, "stop");
  std::optional<CellFailure> failure;
  for (const int rank : congestor.ranks) {
    const CellReport report = unpack_report(control.receive(rank, report_tag));
    if (!failure) failure = report.failure;
  }
  if (failure) failure->reason = "the congestor failed: " + failure->reason;
  return failure;
}

/// Write what each rank has by itself, one rank after the other: a rank keeps its parts until it is asked.
void write_parts(const Control& control, const PlanProbe& probe, const std::vector<int>& members, const CellParts& own,
                 RecordWriter& writer) {
  for (const int member : members) {
    if (member != 0) control.send(member, parts_tag, "now");
    writer.write_parts(probe, member == 0 ? own : unpack_parts(control.receive(member, parts_tag)));
  }
}

void order_all(const Control& control, Order order) {
  for (int other = 1; other < control.size(); ++other) send_order(control, other, order);
}

/// Every rank's, on rank 0. Collective.
template <class Value>
std::vector<Value> gather_values(const Control& control, const Value& own) {
  std::vector<Value> all;
  for (const std::string& text : control.gather(encode(own))) all.push_back(decode<Value>(text));
  return all;
}

/// Synchronise the clocks anew; on rank 0 what each rank found. Collective.
std::vector<ClockCheck> check_clocks(const Surroundings& surroundings) {
  return gather_values(surroundings.control, surroundings.global_clock.synchronise_again());
}

/// The same on rank 0's order, between cells.
std::vector<ClockCheck> order_check(const Surroundings& surroundings) {
  order_all(surroundings.control, {.probe = clock_check});
  return check_clocks(surroundings);
}

/// What the clocks' disagreement may be of a call's time, by which ranks begin too early or too late: as much as what
/// is asked of two ways to measure the same (docs/collectives.md). It is what two synchronisations tell apart, less
/// what chance may have done, not their bound, within which no exchange of messages can tell.
constexpr double most_clock_shift = 0.05;

/// Note what the clocks were off when the cell ended; one whose calls began by clocks that disagreed has failed.
void judge_clocks(const Surroundings& surroundings, const PlanProbe& probe, CellReport& report) {
  ClockSpread spread;
  if (!surroundings.global_clock.is_one_clock()) {
    const std::vector<ClockCheck> all = order_check(surroundings);
    std::vector<ClockCheck> members;
    for (const int rank : members_of(probe)) members.push_back(all[static_cast<std::size_t>(rank)]);
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

void direct_cell(const Surroundings& surroundings, CellRunner& runner, int ordinal, RecordWriter& writer) {
  const Control& control = surroundings.control;
  const PlanProbe& probe = surroundings.plan.probes[static_cast<std::size_t>(ordinal)];
  const std::vector<int> members = members_of(probe);
  if (probe.congestor) start_congestor(control, *probe.congestor, ordinal);
  for (const int member : members) {
    if (member != 0) send_order(control, member, {.probe = ordinal});
  }
  const Family family = facts_of(probe.pattern).family;
  std::optional<CellReport> own;
  CellParts own_parts;
  if (std::ranges::find(members, 0) != members.end()) {
    own = runner.run(probe, ordinal);
    own_parts = take_parts(*own, family);
  }
  CellMerge merge(family);
  for (const int member : members) merge.add(report_of(control, member, own));
  CellReport report = merge.finish();
  if (family == Family::flood) {
    constexpr std::uint64_t messages_of_each_channel = 4;
    join_windows(report, messages_of_each_channel * report.outcome.channels * probe.message_bytes);
  }
  if (probe.congestor) {
    const std::optional<CellFailure> failure = stop_congestor(control, *probe.congestor);
    if (!report.failure) report.failure = failure;
  }
  writer.open_cell(probe, report);
  write_parts(control, probe, members, own_parts, writer);
  if (needs_global_clock(probe)) judge_clocks(surroundings, probe, report);
  writer.close_cell(probe, report);
}

bool needs_clocks(const Plan& plan) { return std::ranges::any_of(plan.probes, needs_global_clock); }

void write_clocks(RecordWriter& writer, const std::vector<ClockModel>& clocks, std::string_view phase) {
  for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
    writer.write_clock(clocks[rank], static_cast<int>(rank), phase);
  }
}

/// The clocks after all cells, each with what it had shifted since the synchronisation before.
void write_last_clocks(const Surroundings& surroundings, RecordWriter& writer) {
  std::vector<ClockModel> clocks;
  for (const ClockCheck& check : order_check(surroundings)) {
    clocks.push_back(check.model);
    if (!check.model.is_shared) clocks.back().error_ns += std::abs(check.shift_ns);
  }
  write_clocks(writer, clocks, "end");
}

/// Renew the clocks before a cell if they are old by now.
void refresh_clocks(const Surroundings& surroundings, const PlanProbe& probe) {
  const GlobalClock& clock = surroundings.global_clock;
  if (needs_global_clock(probe) && !clock.is_one_clock() && clock.is_due()) order_check(surroundings);
}

void direct(const Surroundings& surroundings, const std::vector<json>& ranks, const std::vector<ClockModel>& clocks,
            RecordWriter& writer) {
  CellRunner runner(surroundings);
  writer.write_header(surroundings.plan, ranks, surroundings.clock, mpi_library());
  write_clocks(writer, clocks, "begin");
  for (int i = 0; i < static_cast<int>(surroundings.plan.probes.size()); ++i) {
    refresh_clocks(surroundings, surroundings.plan.probes[static_cast<std::size_t>(i)]);
    direct_cell(surroundings, runner, i, writer);
  }
  if (!clocks.empty()) write_last_clocks(surroundings, writer);
  writer.write_footer();
  order_all(surroundings.control, {.probe = no_more});
}

/// Congest the fabric until rank 0 says that it is enough.
CellReport congest(const Control& control, CellRunner& runner, const PlanProbe& probe, int ordinal) {
  // From its first message to when it is taken as going: queues fill, and byte streams find their pace.
  constexpr std::uint64_t settling_ns = 150'000'000;
  std::uint64_t first_look = 0;
  bool has_begun = false;
  bool is_over = false;
  const auto say_once = [&] {
    if (!has_begun) control.send(0, begun_tag, "begun");
    has_begun = true;
  };
  const auto ask = [&] {
    const std::uint64_t now = KernelClock::now();
    if (first_look == 0) first_look = now;
    if (now - first_look > settling_ns) say_once();
    is_over = is_over || control.try_receive(0, stop_tag).has_value();
    return is_over;
  };
  CellReport report;
  if (!probe.congestor->is_idle) report = runner.run(congestor_probe(probe), ordinal, ask);
  say_once();  // it may be idle, or have failed before
  if (!is_over) control.receive_patiently(0, stop_tag);
  return report;
}

void obey(const Surroundings& surroundings) {
  CellRunner runner(surroundings);
  const Control& control = surroundings.control;
  for (;;) {
    const auto order = decode<Order>(control.receive_patiently(0, order_tag));
    if (order.probe == no_more) return;
    if (order.probe == clock_check) {
      check_clocks(surroundings);
      continue;
    }
    const PlanProbe& probe = surroundings.plan.probes[static_cast<std::size_t>(order.probe)];
    if (order.is_congestor) {
      control.send(0, report_tag, pack(congest(control, runner, probe, order.probe)));
      continue;
    }
    CellReport report = runner.run(probe, order.probe);
    const CellParts parts = take_parts(report, facts_of(probe.pattern).family);
    control.send(0, report_tag, pack(report));
    control.receive_patiently(0, parts_tag);
    control.send(0, parts_tag, pack(parts));
  }
}

void follow_plan(Control& control, const Plan& plan, RecordWriter* writer, std::uint64_t start_up_ns) {
  control.set_patience(plan.patience_seconds);
  MPI_Comm data = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &data);
  GlobalClock global_clock = needs_clocks(plan) ? GlobalClock(control, data, clock_identity()) : GlobalClock();
  const Surroundings surroundings{.control = control,
                                  .plan = plan,
                                  .clock = measure_clock(),
                                  .interface = find_interface(plan.fabric.interface, plan.fabric.subnet),
                                  .host = host_name(),
                                  .data_communicator = data,
                                  .global_clock = global_clock};
  std::vector<json> ranks;
  for (const std::string& text : control.gather(rank_info(surroundings, start_up_ns).dump())) {
    ranks.push_back(json::parse(text));
  }
  std::vector<ClockModel> clocks;
  if (needs_clocks(plan)) clocks = gather_values(control, global_clock.model());
  control.rank() == 0 ? direct(surroundings, ranks, clocks, *writer) : obey(surroundings);
  MPI_Comm_free(&data);
}

Exit read_and_follow_plan(Control& control, const std::string& plan_path, std::uint64_t start_up_ns) {
  Beginning beginning;
  if (control.rank() == 0) beginning = begin(plan_path, control.size());
  const std::string told = control.broadcast(json{{"exit", beginning.exit}, {"plan", beginning.plan_text}}.dump());
  const json value = json::parse(told);
  const Exit exit = value["exit"].get<Exit>();
  if (exit != Exit::done) return exit;
  const Plan plan = parse_plan(value["plan"].get<std::string>());
  follow_plan(control, plan, beginning.writer.get(), start_up_ns);
  return Exit::done;
}

/// Say why the launch ends here, and end it on every rank.
Exit end_launch(Control& control, Exit exit, const std::string& cause) {
  std::fprintf(stderr, "fabricbench-probe: %s\n", cause.c_str());
  control.end_all(static_cast<int>(exit), cause);
  return exit;
}

}  // namespace

Exit launch(const std::string& plan_path, std::uint64_t start_up_ns) {
  // Short sleeps of the control plane are to be short: the default slack would add 50 us to each.
  prctl(PR_SET_TIMERSLACK, 1000);
  Control control;
  control.set_patience(seconds_to_read_plan);
  try {
    return read_and_follow_plan(control, plan_path, start_up_ns);
  } catch (const LaunchEnded& ended) {
    control.confirm(ended);
    return static_cast<Exit>(ended.exit_code());
  } catch (const OutputError& error) {
    return end_launch(control, Exit::environment, error.what());
  } catch (const std::exception& error) {
    const std::string who = "rank " + std::to_string(control.rank()) + " on " + host_name();
    return end_launch(control, Exit::failed, who + " cannot go on: " + error.what());
  }
}

}  // namespace fabricbench
