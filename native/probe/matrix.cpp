// Every pair of a cell's ranks in its turn (PairSchedule). The first member directs: it begins each turn
// with those who meet in it and waits until they are done. A rank holds what concerns its own pairs and nothing else.
#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "core/parameters.hpp"
#include "pattern/channels.hpp"
#include "pattern/patterns.hpp"
#include "probe/cell_runner.hpp"

namespace fabricbench {
namespace {

/// The probe of one pair: its share of the time, and no less than what a median needs.
PlanProbe probe_of_pair(const PlanProbe& probe, words::Schedule schedule, std::size_t turns) {
  constexpr double least_seconds = 5e-3;
  PlanProbe pair = probe;
  const bool is_stream = probe.pattern == Pattern::pairs_stream;
  pair.pattern = is_stream ? Pattern::stream : Pattern::pingpong;
  const double directions = is_stream ? 2 : 1;
  const double shares = static_cast<double>(turns) * directions;
  pair.stopping.maximum_seconds = std::max(least_seconds, probe.stopping.maximum_seconds / shares);
  pair.stopping.minimum_seconds = probe.stopping.minimum_seconds / shares;
  // What is measured of all pairs at once is measured while all of them are: none stops before its time.
  if (schedule == words::Schedule::halves) pair.stopping.relative_width = 0;
  for (const ParameterFacts& own : facts_of(probe.pattern).parameters) {
    if (find_parameter(pair.pattern, own.name) == nullptr) pair.parameters.erase(std::string(own.name));
  }
  return pair;
}

}  // namespace

/// How a turn reaches those who meet in it. Where they are few, the first member tells and hears them alone; where they
/// are many, all members hear of each turn along their tree and are done along it, those who rest as well.
class CellRunner::TurnWay {
 public:
  TurnWay(const CellTeam& team, const PairSchedule& schedule)
      : team_(team),
        schedule_(schedule),
        place_(team.order_place()),
        is_by_tree_(team.size() > TreePlace::largest_star && schedule.busy(0).size() > TreePlace::width) {}

  /// Whom this member tells of a turn, and then waits for.
  std::vector<std::size_t> receivers_of(const Turn& turn) const {
    if (is_by_tree_) return below();
    if (team_.member() != 0) return {};
    std::vector<std::size_t> busy = schedule_.busy(turn.number);
    std::erase(busy, 0);
    return busy;
  }
  /// Whom it tells that there are no more.
  std::vector<std::size_t> receivers_of_end() const {
    if (is_by_tree_) return below();
    std::vector<std::size_t> others(team_.member() == 0 ? team_.size() - 1 : 0);
    std::iota(others.begin(), others.end(), 1);
    return others;
  }
  /// Who tells it; not of the first member.
  std::size_t sender() const { return is_by_tree_ ? place_.parent().value() : 0; }

 private:
  std::vector<std::size_t> below() const {
    std::vector<std::size_t> members;
    for (const Branch& branch : place_.branches()) members.push_back(branch.root);
    return members;
  }

  const CellTeam& team_;
  const PairSchedule& schedule_;
  TreePlace place_;
  bool is_by_tree_;
};

void CellRunner::run_matrix(Cell& cell) {
  const CellTeam& team = cell.team;
  words::Schedule way{};
  cell.agreement.on([&] {
    way = word_parameter<words::Schedule>(cell.probe, "schedule");
    if (word_parameter<words::Stages>(cell.probe, "stages") == words::Stages::none) return;
    throw Failure(FailureCode::unsupported, "stages are measured of one pair, not of a matrix: leave stages out");
  });
  const PairSchedule schedule(team.size(), way);
  const PlanProbe probe = probe_of_pair(cell.probe, way, schedule.turns());
  Cell pair_cell{.probe = probe,
                 .team = team,
                 .agreement = cell.agreement,
                 .report = cell.report,
                 .is_over = {},
                 .door = cell.door,
                 .device = cell.device,
                 .is_counted = cell.is_counted};
  const std::uint64_t begin = Clock::now();
  observed(cell, [&] { team.member() == 0 ? direct_turns(pair_cell, schedule) : obey_turns(pair_cell, schedule); });
  Outcome outcome;  // of the whole, in the place of what the last pair had
  if (team.member() == 0) {
    outcome.stop = StopReason::time;
    outcome.seconds = ns_to_seconds(Clock::now() - begin);
  }
  const bool is_stream = cell.probe.pattern == Pattern::pairs_stream;
  const std::size_t of_round_trip = cell.door->is_one_sided ? 1 : 2;
  const std::size_t messages = is_stream ? cell.probe.messages_per_sample : of_round_trip;
  outcome.bytes_per_sample = messages * cell.probe.message_bytes;
  cell.report.outcome = outcome;
  if (team.has_any(!cell.report.findings.channels.empty())) return;
  cell.agreement.on([&] {
    const std::vector<PairFailure>& failed = cell.report.findings.failed_pairs;
    if (!failed.empty()) throw Failure(failed.back().code, "no pair could be measured: " + failed.back().reason);
  });
}

void CellRunner::direct_turns(Cell& cell, const PairSchedule& schedule) {
  const TurnWay way(cell.team, schedule);
  for (std::uint32_t turn = 0; turn < schedule.turns(); ++turn) take_turn(cell, schedule, way, {.number = turn});
  for (const std::size_t member : way.receivers_of_end()) cell.team.tell(member, TurnsOver{});
}

void CellRunner::obey_turns(Cell& cell, const PairSchedule& schedule) {
  const TurnWay way(cell.team, schedule);
  for (;;) {
    const auto order = cell.team.hear_patiently<Turn, TurnsOver>(way.sender());
    const auto* turn = std::get_if<Turn>(&order);
    if (turn == nullptr) break;
    take_turn(cell, schedule, way, *turn);
    cell.team.tell(way.sender(), TurnDone{});
  }
  for (const std::size_t member : way.receivers_of_end()) cell.team.tell(member, TurnsOver{});
}

void CellRunner::take_turn(Cell& cell, const PairSchedule& schedule, const TurnWay& way, const Turn& turn) {
  const CellTeam& team = cell.team;
  const std::vector<std::size_t> receivers = way.receivers_of(turn);
  for (const std::size_t member : receivers) team.tell(member, turn);
  if (const auto partner = schedule.partner(turn.number, team.member())) run_match(cell, *partner, turn.number);
  for (const std::size_t member : receivers) team.hear<TurnDone>(member);
}

void CellRunner::run_match(Cell& cell, std::size_t partner, std::size_t round) {
  const CellTeam& team = cell.team;
  const std::size_t own = team.member();
  const std::size_t one = std::min(own, partner);
  std::size_t source = one;
  std::size_t destination = std::max(own, partner);
  try {
    if (cell.probe.pattern == Pattern::stream) {
      match_direction(cell, team.some({source, destination}), round, PathEnd::kept);
      std::swap(source, destination);
    }
    match_direction(cell, team.some({source, destination}), round, PathEnd::closed);
  } catch (const AgreedFailure& agreed) {
    // The other pairs are measured all the same: a map with a hole tells more than none. After a direction that failed
    // the other is not tried: both would wait as long for a node that is gone.
    if (own != one) return;
    cell.report.findings.failed_pairs.push_back({.source = team.world_rank(source),
                                                 .destination = team.world_rank(destination),
                                                 .code = agreed.failure.code,
                                                 .reason = agreed.failure.reason});
  }
}

void CellRunner::match_direction(Cell& cell, const CellTeam& pair, std::size_t round, PathEnd path_end) {
  const Agreement agreement(pair, context_.host);
  Cell direction{.probe = cell.probe,
                 .team = pair,
                 .agreement = agreement,
                 .report = cell.report,
                 .is_over = {},
                 .door = cell.door,
                 .device = cell.device,
                 .is_counted = cell.is_counted,
                 .is_observed = false};
  agreement.on([&] { prepare_samples(direction); });
  try {
    measure_pair(direction, path_end);
  } catch (const AgreedFailure&) {
    pair.discard_leftovers();
    throw;
  }
  // A sender that stopped by itself is told to end all the same: the way back must not take that for an order.
  pair.discard_leftovers();
  const bool is_stream = cell.probe.pattern == Pattern::stream;
  if (pair.member() != timing_member_of(cell.probe.pattern, *cell.door)) return;
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
