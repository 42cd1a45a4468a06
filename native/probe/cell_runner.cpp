#include "probe/cell_runner.hpp"

#include <algorithm>

#include "core/hang_alarm.hpp"
#include "core/line_file.hpp"
#include "core/watchdog.hpp"
#include "mpi_operation/operation.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

/// Bytes are given where they differ from sample to sample, or `always_bytes`.
PhaseSamples to_phase(const Series& series, const PlanProbe& probe, Timebase timebase, bool always_bytes) {
  PhaseSamples samples;
  samples.time_ns.reserve(series.size());
  for (const std::uint64_t ticks : series.ticks()) samples.time_ns.push_back(timebase.to_ns(ticks));
  const std::size_t complete = probe.messages_per_sample * probe.message_bytes;
  if (always_bytes || std::ranges::any_of(series.bytes(), [&](std::uint64_t bytes) { return bytes != complete; })) {
    samples.bytes.assign(series.bytes().begin(), series.bytes().end());
  }
  samples.batches = series.batches();
  return samples;
}

void check_parameters(const PlanProbe& probe, const Door& door) {
  if (!door.has_flows && group_parameters(probe).flows > 1) {
    throw Failure(FailureCode::unsupported, std::string(name_of(probe.layer)) +
                                                " has no ports: parallel flows between two ranks cannot be told apart");
  }
  std::vector<std::string> known = door.parameters;
  known.emplace_back("door");
  const std::vector<std::string>& of_pattern = pattern_entry(probe.pattern).parameters;
  known.insert(known.end(), of_pattern.begin(), of_pattern.end());
  for (const auto& [key, value] : probe.parameters.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    throw Failure(FailureCode::unsupported, "parameter '" + key + "' is unknown to " +
                                                std::string(name_of(probe.pattern)) + " over layer " +
                                                std::string(name_of(probe.layer)) + "; known: " + list);
  }
}

/// The same number for a door on every rank (FNV-1a).
std::uint64_t number_of(std::string_view door) {
  std::uint64_t number = 0xcbf29ce484222325U;
  for (const char letter : door) number = (number ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return number;
}

/// What tells a path's messages from those of any other path of the launch, and from those of earlier ones between the
/// same ranks.
std::uint32_t path_token(std::uint32_t launch_token, int own_rank, const PathCache::Key& key,
                         std::uint32_t generation) {
  std::uint64_t state = launch_token;
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(std::min(own_rank, key.peer_rank)),
        static_cast<std::uint64_t>(std::max(own_rank, key.peer_rank)), std::uint64_t{key.flow},
        static_cast<std::uint64_t>(key.layer), static_cast<std::uint64_t>(key.receive), number_of(key.door),
        std::uint64_t{generation}}) {
    state = (state ^ part) * 0x9e3779b97f4a7c15U;
    state ^= state >> 29U;
  }
  return static_cast<std::uint32_t>(state ^ (state >> 32U));
}

// The waits of the control plane end first, and know whom they waited for; and a cell is several of them.
constexpr double share_of_patience = 1.5;
constexpr int hung_exit_code = 1;

std::optional<double> alarm_after(std::optional<double> patience_seconds) {
  if (patience_seconds) *patience_seconds *= share_of_patience;
  return patience_seconds;
}

}  // namespace

std::vector<int> members_of(const PlanProbe& probe) {
  return is_local(probe.layer) ? std::vector<int>{probe.ranks.front()} : probe.ranks;
}

CellFailure CellRunner::named(const Failure& failure) const {
  return {failure.code(),
          "rank " + std::to_string(surroundings_.control.rank()) + " on " + surroundings_.host + ": " + failure.what()};
}

void CellRunner::agree(const CellTeam& team, const std::function<void()>& action) const {
  std::optional<CellFailure> own;
  try {
    action();
  } catch (const Failure& failure) {
    own = named(failure);
  } catch (const std::bad_alloc&) {
    own = named(Failure(FailureCode::error, "out of memory: use smaller messages or fewer samples"));
  }
  // Who waits for a rank that has failed times out: of several failures the others are the cause.
  const auto join = [](std::string one, std::string other) {
    const auto first = failure_from(json::parse(one));
    const auto second = failure_from(json::parse(other));
    const bool is_second = second && (!first || first->code == FailureCode::timeout);
    return is_second ? other : one;
  };
  if (const auto failure = failure_from(json::parse(team.converge(to_json(own).dump(), join)))) {
    throw AgreedFailure{*failure};
  }
}

/// What a rank says that is still in a cell when all others should have ended it, too.
std::string CellRunner::hanging(const PlanProbe& probe) const {
  return "rank " + std::to_string(surroundings_.control.rank()) + " on " + surroundings_.host + " is still in cell " +
         std::to_string(probe.id) + " (" + std::string(name_of(probe.layer)) + " " +
         std::string(name_of(probe.pattern)) +
         "), for longer than a cell of this plan takes: a rank that does not say so hangs";
}

CellReport CellRunner::run(const PlanProbe& probe, int ordinal, const std::function<bool()>& is_over) {
  const CellTeam team(surroundings_.control, members_of(probe), ordinal);
  const HangAlarm alarm(alarm_after(surroundings_.plan.patience_seconds), hanging(probe), hung_exit_code);
  CellReport report;
  Cell cell{.probe = probe, .team = team, .report = report, .is_over = is_over};
  samples_.warmup.prepare(0, false);
  samples_.measured.prepare(0, false);
  try {
    run_or_fail(cell);
  } catch (const AgreedFailure& agreed) {
    report.failure = agreed.failure;
  }
  team.discard_leftovers();
  const Family family = facts_of(probe.pattern).family;
  if (family != Family::matrix) take_samples(cell, family == Family::flood);
  return report;
}

void CellRunner::take_samples(Cell& cell, bool always_bytes) {
  // Operations are timed by the clock that the ranks agree on, whose ticks are nanoseconds.
  const bool is_operation = facts_of(cell.probe.pattern).family == Family::operation;
  const Timebase timebase = is_operation ? Timebase{} : surroundings_.clock.timebase;
  append(cell.report.warmup, to_phase(samples_.warmup, cell.probe, timebase, always_bytes));
  append(cell.report.measured, to_phase(samples_.measured, cell.probe, timebase, always_bytes));
}

void CellRunner::prepare_samples(const Cell& cell) {
  const PlanProbe& probe = cell.probe;
  const Family family = facts_of(probe.pattern).family;
  const bool is_timing = cell.door->is_local || (family != Family::pair && family != Family::matrix) ||
                         cell.team.member() == pattern_entry(probe.pattern).timing_member ||
                         probe.pattern == Pattern::oneway;
  const bool is_flood = family == Family::flood;
  const bool with_bytes = (probe.pattern == Pattern::stream && !cell.door->is_local) || is_flood;
  // Each round of a flood has a warm-up of its own.
  const std::size_t rounds =
      is_flood ? rounds_of(probe.pattern, cell.team.size(), group_parameters(probe)) : std::size_t{1};
  samples_.warmup.prepare(is_timing ? probe.warmup_samples * rounds : 0, with_bytes);
  samples_.measured.prepare(is_timing ? std::max(probe.stopping.maximum_samples, rounds) : 0, with_bytes);
}

void CellRunner::run_or_fail(Cell& cell) {
  agree(cell.team, [&] {
    cell.door = &door_of(cell.probe);
    cell.report.receive = receive_of(*cell.door, cell.probe.receive);
    check_parameters(cell.probe, *cell.door);
    cell.device = &devices_.lend(*cell.door);
    if (!cell.is_over) prepare_samples(cell);
  });
  switch (facts_of(cell.probe.pattern).family) {
    case Family::pair:
      return run_pair(cell);
    case Family::lockstep:
    case Family::flood:
      return run_group(cell);
    case Family::matrix:
      return run_matrix(cell);
    case Family::operation:
      return run_operation(cell);
    case Family::workload:
      return;  // check_ranks has refused it
  }
}

std::unique_ptr<Watchdog> CellRunner::watchdog_for(const Cell& cell) {
  // A library waits as it likes.
  if (cell.report.receive == Receive::library) return nullptr;
  return std::make_unique<Watchdog>(watchdog_period(cell.probe.reply_timeout_seconds));
}

Task CellRunner::task_of(Cell& cell, std::uint32_t token, std::uint32_t& sequence) {
  return {.probe = cell.probe,
          .team = cell.team,
          .timebase = surroundings_.clock.timebase,
          .clock_overhead_ns = surroundings_.clock.overhead_ns,
          .token = token,
          .sequence = sequence,
          .samples = samples_,
          .counters = cell.report.counters,
          .findings = cell.report.findings,
          .clock = surroundings_.global_clock.model(),
          .is_over = cell.is_over};
}

std::int64_t CellRunner::common_start(const CellTeam& team) const {
  // Long enough for the last member to hear of it and to come out of its sleep.
  constexpr std::int64_t soon_ns = 10'000'000;
  constexpr std::int64_t per_member_ns = 500'000;
  const std::int64_t proposal = surroundings_.global_clock.model().to_global(KernelClock::now()) + soon_ns +
                                per_member_ns * static_cast<std::int64_t>(team.size());
  return std::stoll(team.broadcast(std::to_string(proposal)));
}

std::vector<PathCache::Key> CellRunner::keys_of(const Cell& cell, const CellTeam& team,
                                                const std::vector<Link>& links) const {
  std::vector<PathCache::Key> keys;
  for (const Link& link : links) {
    keys.push_back({cell.probe.layer, team.world_rank(link.peer), link.flow, cell.report.receive, cell.door->name});
  }
  return keys;
}

std::vector<Endpoint::Member> CellRunner::endpoints_for(Cell& cell, const CellTeam& team,
                                                        const std::vector<Link>& links) {
  std::vector<Endpoint::Member> members;
  struct Opened {
    Endpoint::Member* member;
    PathCache::Key key;
    std::unique_ptr<Endpoint> endpoint;
  };
  std::vector<Opened> opened;
  const int own_rank = surroundings_.control.rank();
  const std::vector<PathCache::Key> keys = keys_of(cell, team, links);
  for (const Link& link : links) members.push_back({link, nullptr, team.world_rank(link.peer)});
  for (std::size_t i = 0; i < links.size(); ++i) team.send_text(links[i].peer, encode(paths_.state(keys[i])));
  for (std::size_t i = 0; i < links.size(); ++i) {
    paths_.agree(keys[i], decode<PathCache::State>(team.receive_text(links[i].peer)));
  }
  agree(team, [&] {
    for (std::size_t i = 0; i < links.size(); ++i) {
      Endpoint::Member& member = members[i];
      member.endpoint = paths_.find(keys[i]);
      if (member.endpoint != nullptr) continue;
      const std::uint32_t generation = paths_.state(keys[i]).generation;
      const Site site{.token = path_token(surroundings_.plan.token, own_rank, keys[i], generation),
                      .peer_rank = member.peer_rank,
                      .flow = static_cast<int>(member.link.flow),
                      .generation = generation,
                      .is_first = own_rank < member.peer_rank};
      opened.push_back({&member, keys[i], cell.device->open(site, cell.probe, cell.report.receive)});
    }
  });
  for (const Opened& path : opened) team.send_text(path.member->link.peer, path.endpoint->address());
  std::vector<std::string> addresses;
  for (const Opened& path : opened) addresses.push_back(team.receive_text(path.member->link.peer));
  agree(team, [&] {
    for (std::size_t i = 0; i < opened.size(); ++i) opened[i].endpoint->meet(addresses[i]);
  });
  for (Opened& path : opened) {
    path.member->endpoint = path.endpoint.get();
    paths_.add(path.key, std::move(path.endpoint));
  }
  agree(team, [&] {
    for (const Endpoint::Member& member : members) {
      member.endpoint->check_size(cell.probe.message_bytes, pattern_entry(cell.probe.pattern).smallest_message);
    }
  });
  for (const Endpoint::Member& member : members) {
    team.send_text(member.link.peer, std::to_string(member.endpoint->sequence));
  }
  for (const Endpoint::Member& member : members) {
    const auto other = static_cast<std::uint32_t>(std::stoul(team.receive_text(member.link.peer)));
    member.endpoint->sequence = std::max(member.endpoint->sequence, other);
  }
  return members;
}

void CellRunner::note_granted(Cell& cell, const std::vector<Endpoint::Member>& members) {
  for (const Endpoint::Member& member : members) {
    const auto granted = member.endpoint->granted_buffers();
    if (!granted) continue;
    note_least(cell.report.findings.values, "receive_buffer_bytes", granted->receive_bytes);
    note_least(cell.report.findings.values, "send_buffer_bytes", granted->send_bytes);
  }
}

void CellRunner::observed(Cell& cell, const std::function<void()>& action) {
  if (cell.team.member() != 0) return action();
  const Traffic before = cell.device->traffic();
  const std::int64_t begin_unix_ns = unix_ns();
  action();
  cell.report.span = {begin_unix_ns, unix_ns()};
  cell.report.interfaces = traffic_between(before, cell.device->traffic());
}

void CellRunner::counted(Cell& cell, const std::function<Outcome()>& action) {
  observed(cell, [&] { cell.report.outcome = action(); });
}

void CellRunner::run_pair(Cell& cell) {
  if (cell.door->is_local) {
    std::unique_ptr<Endpoint> endpoint;
    agree(cell.team, [&] {
      endpoint = cell.device->open({}, cell.probe, cell.report.receive);
      Task task = task_of(cell, 0, endpoint->sequence);
      counted(cell, [&] { return endpoint->run(cell.probe.pattern, surroundings_.clock.is_counter, task); });
    });
    return;
  }
  measure_pair(cell);
}

void CellRunner::measure_pair(Cell& cell) {
  const Link link{.peer = 1 - cell.team.member(), .flow = 0, .sends = true, .receives = true};
  PathLease lease(paths_, keys_of(cell, cell.team, {link}));
  const std::vector<Endpoint::Member> members = endpoints_for(cell, cell.team, {link});
  Endpoint& endpoint = *members.front().endpoint;
  Task task = task_of(cell, endpoint.token, endpoint.sequence);
  const auto watchdog = watchdog_for(cell);
  agree(cell.team, [&] { endpoint.verify_messages(task); });
  agree(cell.team, [&] {
    counted(cell, [&] { return endpoint.run(cell.probe.pattern, surroundings_.clock.is_counter, task); });
    note_granted(cell, members);
  });
  lease.give_back();
}

void CellRunner::run_group(Cell& cell) {
  const PlanProbe& probe = cell.probe;
  GroupParameters parameters;
  agree(cell.team, [&] { parameters = group_parameters(probe); });
  const std::size_t rounds = cell.is_over ? 1 : rounds_of(probe.pattern, cell.team.size(), parameters);
  observed(cell, [&] {
    for (std::size_t round = 0; round < rounds; ++round) run_round(cell, parameters, round, rounds);
  });
}

void CellRunner::run_round(Cell& cell, const GroupParameters& parameters, std::size_t round, std::size_t rounds) {
  const PlanProbe& probe = cell.probe;
  const std::vector<Link> links = links_of(probe.pattern, cell.team.size(), cell.team.member(), parameters, round);
  PathLease lease(paths_, keys_of(cell, cell.team, links));
  const std::vector<Endpoint::Member> members = endpoints_for(cell, cell.team, links);
  std::uint32_t unused_sequence = 0;
  Task task = task_of(cell, surroundings_.plan.token, unused_sequence);
  task.round = round;
  task.rounds = rounds;
  const auto watchdog = watchdog_for(cell);
  agree(cell.team, [&] {
    if (!members.empty()) members.front().endpoint->verify_group(members, task);
  });
  if (facts_of(probe.pattern).family == Family::flood) task.start_ns = common_start(cell.team);
  agree(cell.team, [&] {
    if (!members.empty()) {
      note_granted(cell, members);
      cell.report.outcome = members.front().endpoint->run_group(members, surroundings_.clock.is_counter, task);
    } else if (rounds > 1) {  // left over in this round
      cell.report.outcome = rest_from_flood(task);
    }
  });
  lease.give_back();
}

void CellRunner::run_operation(Cell& cell) {
  std::uint32_t unused_sequence = 0;
  Task task = task_of(cell, surroundings_.plan.token, unused_sequence);
  const MPI_Comm communicator = communicator_of(cell.team);
  agree(cell.team, [&] { verify_operation(communicator, task); });
  task.start_ns = common_start(cell.team);
  agree(cell.team, [&] { counted(cell, [&] { return fabricbench::run_operation(communicator, task); }); });
}

MPI_Comm CellRunner::communicator_of(const CellTeam& team) {
  MPI_Comm& communicator = communicators_.try_emplace(team.world_ranks(), MPI_COMM_NULL).first->second;
  if (communicator != MPI_COMM_NULL) return communicator;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group ours = MPI_GROUP_NULL;
  MPI_Comm_group(surroundings_.data_communicator, &all);
  MPI_Group_incl(all, static_cast<int>(team.size()), team.world_ranks().data(), &ours);
  MPI_Comm_create_group(surroundings_.data_communicator, ours, 0, &communicator);
  MPI_Group_free(&ours);
  MPI_Group_free(&all);
  return communicator;
}

CellRunner::~CellRunner() {
  for (auto& [ranks, communicator] : communicators_) {
    if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
  }
}

}  // namespace fabricbench
