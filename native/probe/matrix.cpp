// Every pair of a cell's ranks in its turn. The first member directs: it names the next pair, or the next round of
// disjoint pairs, and waits until it is done. A rank holds what concerns its own pairs and nothing else.
#include <algorithm>

#include "probe/cell_runner.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

/// Who measures next: these two, or in a round everybody with the partner that the schedule gives.
struct MatchOrder {
  bool is_over = false;
  bool is_round = false;
  std::uint16_t reserved = 0;  // sent with the rest
  std::uint32_t round = 0;
  std::uint32_t one = 0;
  std::uint32_t other = 0;
};

/// The partner that an order gives a member; nothing where it rests.
std::optional<std::size_t> partner_of(const MatchOrder& order, std::size_t members, std::size_t member) {
  if (order.is_round) return partner_in_round(members, member, order.round);
  if (member == order.one) return order.other;
  if (member == order.other) return order.one;
  return std::nullopt;
}

bool wants_rounds(const PlanProbe& probe) {
  if (!probe.parameters.contains("schedule")) return false;
  const json& schedule = probe.parameters["schedule"];
  if (schedule == "rounds") return true;
  if (schedule == "alone") return false;
  throw Failure(FailureCode::unsupported, "schedule must be alone or rounds, found " + schedule.dump());
}

/// How many turns share the cell's time.
std::size_t turns_of(std::size_t members, bool is_in_rounds) {
  return is_in_rounds ? schedule_rounds(members) : members * (members - 1) / 2;
}

/// Whether some member has it. Collective.
bool has_any(const CellTeam& team, bool own) {
  const auto join = [](std::string one, std::string other) { return one.empty() ? other : one; };
  return !team.converge(own ? "yes" : "", join).empty();
}

/// The probe of one pair: its share of the time, and no less than what a median needs.
PlanProbe probe_of_pair(const PlanProbe& probe, std::size_t turns) {
  constexpr double least_seconds = 5e-3;
  PlanProbe pair = probe;
  const bool is_stream = probe.pattern == Pattern::pairs_stream;
  pair.pattern = is_stream ? Pattern::stream : Pattern::pingpong;
  const double directions = is_stream ? 2 : 1;
  const double shares = static_cast<double>(turns) * directions;
  pair.stopping.maximum_seconds = std::max(least_seconds, probe.stopping.maximum_seconds / shares);
  pair.stopping.minimum_seconds = probe.stopping.minimum_seconds / shares;
  pair.parameters = json::object();
  return pair;
}

}  // namespace

void CellRunner::run_matrix(Cell& cell) {
  const std::size_t members = cell.team.size();
  const std::size_t own = cell.team.member();
  bool is_in_rounds = false;
  agree(cell.team, [&] { is_in_rounds = wants_rounds(cell.probe); });
  const PlanProbe probe = probe_of_pair(cell.probe, turns_of(members, is_in_rounds));
  Cell pair_cell{.probe = probe,
                 .team = cell.team,
                 .report = cell.report,
                 .is_over = {},
                 .door = cell.door,
                 .device = cell.device};
  const auto take = [&](const MatchOrder& order) {
    if (const auto partner = partner_of(order, members, own)) run_match(pair_cell, *partner, order.round);
  };
  const auto tell = [&](std::size_t member, const MatchOrder& order) { cell.team.send_text(member, encode(order)); };
  const auto direct = [&](const MatchOrder& order) {
    std::vector<std::size_t> busy;
    for (std::size_t member = 1; member < members; ++member) {
      if (partner_of(order, members, member)) busy.push_back(member);
    }
    for (const std::size_t member : busy) tell(member, order);
    take(order);
    for (const std::size_t member : busy) cell.team.receive_text(member);
  };
  const auto obey = [&] {
    for (;;) {
      const auto order = decode<MatchOrder>(cell.team.receive_text_patiently(0));
      if (order.is_over) return;
      take(order);
      cell.team.send_text(0, "done");
    }
  };
  const auto direct_all = [&] {
    std::uint32_t round = 0;
    if (is_in_rounds) {
      for (; round < schedule_rounds(members); ++round) direct({.is_round = true, .round = round});
    } else {
      for (std::uint32_t one = 0; one < members; ++one) {
        for (std::uint32_t other = one + 1; other < members; ++other) {
          direct({.round = round++, .one = one, .other = other});
        }
      }
    }
    for (std::size_t member = 1; member < members; ++member) tell(member, {.is_over = true});
  };
  const std::uint64_t begin = KernelClock::now();
  observed(cell, [&] { own == 0 ? direct_all() : obey(); });
  if (own == 0) {
    cell.report.outcome.stop = StopReason::time;
    cell.report.outcome.seconds = static_cast<double>(KernelClock::now() - begin) * 1e-9;
  }
  const bool is_stream = cell.probe.pattern == Pattern::pairs_stream;
  const std::size_t messages = is_stream ? cell.probe.messages_per_sample : 2;
  cell.report.outcome.bytes_per_sample = messages * cell.probe.message_bytes;
  if (has_any(cell.team, !cell.report.findings.channels.empty())) return;
  agree(cell.team, [&] {
    const std::vector<PairFailure>& failed = cell.report.findings.failed_pairs;
    if (!failed.empty()) throw Failure(failed.back().code, "no pair could be measured: " + failed.back().reason);
  });
}

void CellRunner::run_match(Cell& cell, std::size_t partner, std::size_t round) {
  const std::size_t own = cell.team.member();
  const std::size_t one = std::min(own, partner);
  const std::size_t other = std::max(own, partner);
  try {
    match_direction(cell, cell.team.some({one, other}), round);
    if (cell.probe.pattern == Pattern::stream) match_direction(cell, cell.team.some({other, one}), round);
  } catch (const AgreedFailure& agreed) {
    // The other pairs are measured all the same: a map with a hole tells more than none.
    if (own != one) return;
    cell.report.findings.failed_pairs.push_back({.source = cell.team.world_rank(one),
                                                 .destination = cell.team.world_rank(other),
                                                 .code = agreed.failure.code,
                                                 .reason = agreed.failure.reason});
  }
}

void CellRunner::match_direction(Cell& cell, const CellTeam& pair, std::size_t round) {
  Cell direction{.probe = cell.probe,
                 .team = pair,
                 .report = cell.report,
                 .is_over = {},
                 .door = cell.door,
                 .device = cell.device};
  prepare_samples(direction);
  measure_pair(direction);
  const bool is_stream = cell.probe.pattern == Pattern::stream;
  if (pair.member() != pattern_entry(cell.probe.pattern).timing_member) return;
  const std::size_t first = cell.report.measured.time_ns.size();
  take_samples(direction, is_stream);
  const PhaseSamples& all = cell.report.measured;
  ChannelReport channel;
  channel.source = pair.world_rank(0);
  channel.destination = pair.world_rank(1);
  channel.round = round;
  channel.quantity = is_stream ? Quantity::transfer : Quantity::round_trip;
  channel.time_ns.assign(all.time_ns.begin() + static_cast<std::ptrdiff_t>(first), all.time_ns.end());
  if (is_stream) channel.bytes.assign(all.bytes.begin() + static_cast<std::ptrdiff_t>(first), all.bytes.end());
  cell.report.findings.channels.push_back(std::move(channel));
}

}  // namespace fabricbench
