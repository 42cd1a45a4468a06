#include "probe/orders.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "core/channel.hpp"
#include "core/whereabouts.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

template <Message M>
void send_all(const Channel& channel, const std::vector<int>& ranks, const M& message) {
  for (const int rank : ranks) {
    if (rank != 0) channel.send(rank, message);
  }
}

template <Message M>
void send_others(const Channel& channel, const M& message) {
  for (int other = 1; other < channel.size(); ++other) channel.send(other, message);
}

/// A rank's report, its own one or one that is sent.
CellReport report_of(const Channel& channel, int member, const std::optional<CellReport>& own) {
  return member == 0 ? *own : channel.receive<CellReport>(member);
}

/// Start the congestor's ranks and wait until each has begun or failed.
void start_congestor(const Channel& channel, const PlanCongestor& congestor, int ordinal) {
  send_all(channel, congestor.ranks, Congest{.probe = ordinal});
  for (const int rank : congestor.ranks) channel.receive<Begun>(rank);
}

/// End it; its failure if it had one.
std::optional<CellFailure> stop_congestor(const Channel& channel, const PlanCongestor& congestor) {
  send_all(channel, congestor.ranks, Stop{});
  std::optional<CellFailure> failure;
  for (const int rank : congestor.ranks) {
    const auto report = channel.receive<CellReport>(rank);
    if (!failure) failure = report.failure;
  }
  if (failure) failure->reason = "the congestor failed: " + failure->reason;
  return failure;
}

/// Write what each rank has by itself, one rank after the other: a rank keeps its parts until it is asked.
void write_parts(const Channel& channel, const PlanProbe& probe, const std::vector<int>& members, const CellParts& own,
                 RecordWriter& writer) {
  for (const int member : members) {
    if (member != 0) channel.send(member, SendParts{});
    writer.write_parts(probe, member == 0 ? own : channel.receive<CellParts>(member));
  }
}

/// Synchronise the clocks anew; on rank 0 what each rank found. Collective.
std::vector<ClockCheck> check_clocks(const Surroundings& surroundings) {
  return Channel(surroundings.control).gather(surroundings.global_clock.synchronise_again());
}

/// The same on rank 0's order, between cells.
std::vector<ClockCheck> order_check(const Surroundings& surroundings) {
  send_others(Channel(surroundings.control), CheckClocks{});
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
  const Channel channel(surroundings.control);
  const PlanProbe& probe = surroundings.plan.probes[static_cast<std::size_t>(ordinal)];
  const std::vector<int> members = members_of(probe);
  if (probe.congestor) start_congestor(channel, *probe.congestor, ordinal);
  send_all(channel, members, Measure{.probe = ordinal});
  const Family family = facts_of(probe.pattern).family;
  std::optional<CellReport> own;
  CellParts own_parts;
  if (std::ranges::find(members, 0) != members.end()) {
    own = runner.run(probe, ordinal);
    own_parts = take_parts(*own, family);
  }
  CellMerge merge(family);
  for (const int member : members) merge.add(report_of(channel, member, own));
  CellReport report = merge.finish();
  if (family == Family::flood) {
    constexpr std::uint64_t messages_of_each_channel = 4;
    join_windows(report, messages_of_each_channel * report.outcome.channels * probe.message_bytes);
  }
  if (probe.congestor) {
    const std::optional<CellFailure> failure = stop_congestor(channel, *probe.congestor);
    if (!report.failure) report.failure = failure;
  }
  writer.open_cell(probe, report);
  write_parts(channel, probe, members, own_parts, writer);
  if (needs_global_clock(probe)) judge_clocks(surroundings, probe, report);
  writer.close_cell(probe, report);
}

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

/// The probe that an order means. Throws ControlError where the plan has none there.
const PlanProbe& probe_of(const Plan& plan, int ordinal) {
  if (ordinal < 0 || ordinal >= std::ssize(plan.probes)) {
    throw ControlError("rank 0 orders probe " + std::to_string(ordinal) + " of a plan of " +
                       std::to_string(plan.probes.size()));
  }
  return plan.probes[static_cast<std::size_t>(ordinal)];
}

/// Take part in a cell, report, and hand over what nothing is to be joined with when it is asked for.
void measure(const Channel& channel, CellRunner& runner, const PlanProbe& probe, int ordinal) {
  CellReport report = runner.run(probe, ordinal);
  const CellParts parts = take_parts(report, facts_of(probe.pattern).family);
  channel.send(0, report);
  channel.receive_patiently<SendParts>(0);
  channel.send(0, parts);
}

/// Congest the fabric until rank 0 says that it is enough.
CellReport congest(const Channel& channel, CellRunner& runner, const PlanProbe& probe, int ordinal) {
  // From its first message to when it is taken as going: queues fill, and byte streams find their pace.
  constexpr std::uint64_t settling_ns = 150'000'000;
  std::uint64_t first_look = 0;
  bool has_begun = false;
  bool is_over = false;
  const auto say_once = [&] {
    if (!has_begun) channel.send(0, Begun{});
    has_begun = true;
  };
  const auto ask = [&] {
    const std::uint64_t now = KernelClock::now();
    if (first_look == 0) first_look = now;
    if (now - first_look > settling_ns) say_once();
    is_over = is_over || channel.try_receive<Stop>(0).has_value();
    return is_over;
  };
  CellReport report;
  if (!probe.congestor->is_idle) report = runner.run(congestor_probe(probe), ordinal, ask);
  say_once();  // it may be idle, or have failed before
  if (!is_over) channel.receive_patiently<Stop>(0);
  return report;
}

}  // namespace

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
  send_others(Channel(surroundings.control), Finish{});
}

void obey(const Surroundings& surroundings) {
  CellRunner runner(surroundings);
  const Channel channel(surroundings.control);
  for (;;) {
    const auto order = channel.receive_patiently<Measure, Congest, CheckClocks, Finish>(0);
    if (const auto* cell = std::get_if<Measure>(&order)) {
      measure(channel, runner, probe_of(surroundings.plan, cell->probe), cell->probe);
    } else if (const auto* congestor = std::get_if<Congest>(&order)) {
      const PlanProbe& probe = probe_of(surroundings.plan, congestor->probe);
      channel.send(0, congest(channel, runner, probe, congestor->probe));
    } else if (std::holds_alternative<CheckClocks>(order)) {
      check_clocks(surroundings);
    } else {
      return;
    }
  }
}

}  // namespace fabricbench
