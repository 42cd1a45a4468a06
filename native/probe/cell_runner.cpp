// A cell on one rank, from the plan's probe to this rank's report. A ping-pong goes through run(), run_or_fail() and
// measure_pair(): both ranks look up the door and borrow the path between them, opened end by end where no earlier cell
// has (probe/agreement.hpp); messages with known contents go there and back; then the endpoint, which alone knows the
// type of the path (probe/endpoint.hpp), runs the pattern between two readings of the counters; and the samples, in
// nanoseconds now, are the report that probe/launch.cpp joins with those of the other ranks.
#include "probe/cell_runner.hpp"

#include <algorithm>

#include "base/line_file.hpp"
#include "core/parameters.hpp"
#include "core/watchdog.hpp"
#include "mpi_operation/operation.hpp"
#include "pattern/flood_round.hpp"
#include "pattern/patterns.hpp"
#include "probe/path_site.hpp"

namespace fabricbench {
namespace {

/// Bytes are given where they differ from sample to sample, or `always_bytes`.
PhaseSamples to_phase(const Series& series, const PlanProbe& probe, bool always_bytes) {
  PhaseSamples samples;
  samples.time_ns.assign(series.times_ns().begin(), series.times_ns().end());
  const std::size_t complete = probe.messages_per_sample * probe.message_bytes;
  if (always_bytes || std::ranges::any_of(series.bytes(), [&](std::uint64_t bytes) { return bytes != complete; })) {
    samples.bytes.assign(series.bytes().begin(), series.bytes().end());
  }
  samples.batches = series.batches();
  return samples;
}

/// What a cell asks for by its parameter `memory`.
MemoryKind memory_of(const PlanProbe& probe) { return word_parameter<MemoryKind>(probe, "memory"); }

void check_parameters(const PlanProbe& probe, const Door& door) {
  if (memory_of(probe) != MemoryKind::plain && door.is_local) {
    throw Failure(FailureCode::unsupported, "door " + std::string(door.name) + " into layer " +
                                                std::string(name_of(probe.layer)) +
                                                " has arrays of its own, in plain memory: leave memory out");
  }
  if (!door.has_flows && flows_of(group_parameters(probe)) > 1) {
    throw Failure(FailureCode::unsupported, "door " + std::string(door.name) + " into layer " +
                                                std::string(name_of(probe.layer)) +
                                                " cannot tell parallel flows between two ranks apart: take 1");
  }
  std::vector<std::string> known;
  for (const ParameterFacts& parameter : facts_of(probe.pattern).parameters) {
    if (parameter.layers.has(probe.layer)) known.emplace_back(parameter.name);
  }
  for (const ParameterFacts& parameter : layer_parameters) {
    if (parameter.layers.has(probe.layer)) known.emplace_back(parameter.name);
  }
  known.emplace_back("door");
  known.emplace_back("memory");
  for (const auto& [key, value] : probe.parameters) {
    if (std::ranges::find(known, key) != known.end()) continue;
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    throw Failure(FailureCode::unsupported, "parameter '" + key + "' is unknown to " +
                                                std::string(name_of(probe.pattern)) + " over layer " +
                                                std::string(name_of(probe.layer)) + "; known: " + list);
  }
}

/// What a cell tells its layer: only paths that were told the same are used again.
std::string told_to_layer(const PlanProbe& probe) {
  std::string told;
  for (const auto& [key, value] : probe.parameters) {
    if (find_parameter(probe.layer, key) != nullptr) told += key + '=' + text_of(value) + ' ';
  }
  return told;
}

// Counters are 500 bytes a rank and cell: of a cell of thousands of ranks, those of its first ones tell.
constexpr std::size_t most_counted_members = 256;

// The waits of the control plane end first, and know whom they waited for; and a cell is several of them.
constexpr double share_of_patience = 1.5;
constexpr int hung_exit_code = 1;

std::optional<double> alarm_after(std::optional<double> patience_seconds) {
  if (patience_seconds) *patience_seconds *= share_of_patience;
  return patience_seconds;
}

}  // namespace

std::size_t timing_member_of(Pattern pattern, const Door& door) {
  return door.sends_unseen && pattern == Pattern::stream ? stream_sender : timing_member_of(pattern);
}

RankList members_of(const PlanProbe& probe) {
  return RankList(is_local(probe.layer) ? std::span(probe.ranks).first(1) : std::span(probe.ranks));
}

/// What a rank says that is still in a cell when all others should have ended it, too.
std::string CellRunner::hanging(const PlanProbe& probe) const {
  return "rank " + std::to_string(context_.control.rank()) + " on " + context_.host + " is still in cell " +
         std::to_string(probe.id) + " (" + std::string(name_of(probe.layer)) + " " +
         std::string(name_of(probe.pattern)) +
         "), for longer than a cell of this plan takes: a rank that does not say so hangs";
}

CellReport CellRunner::run(const PlanProbe& probe, int ordinal, const std::function<bool()>& is_over) {
  const CellTeam team(context_.control, members_of(probe), ordinal);
  const Agreement agreement(team, context_.host);
  const HangAlarm alarm(alarm_after(context_.plan.patience_seconds), hanging(probe), hung_exit_code);
  CellReport report;
  Cell cell{.probe = probe,
            .team = team,
            .agreement = agreement,
            .report = report,
            .is_over = is_over,
            .reads_host = is_first_there(team, context_.first_rank_on_host),
            .reads_machine = is_first_there(team, context_.first_rank_on_machine),
            .is_counted = context_.counters != nullptr && team.member() < most_counted_members};
  samples_.prepare(0, 0, false);
  try {
    run_or_fail(cell);
  } catch (const AgreedFailure& agreed) {
    report.failure = agreed.failure;
    report.findings.counters.clear();  // of a part of the cell
  }
  note_host(cell);
  team.discard_leftovers();
  const Family family = facts_of(probe.pattern).family;
  if (family != Family::matrix) take_samples(cell, family == Family::flood);
  return report;
}

bool CellRunner::is_first_there(const CellTeam& team, const RankList& first_there) {
  const auto place_of = [&](std::size_t member) {
    return first_there[static_cast<std::size_t>(team.world_rank(member))];
  };
  for (std::size_t member = 0; member < team.member(); ++member) {
    if (place_of(member) == place_of(team.member())) return false;
  }
  return true;
}

void CellRunner::read_host(Cell& cell) const {
  if (!cell.reads_host) return;
  cell.ports_before = read_port_state(ports_);
  if (cell.team.member() != 0) cell.traffic_before = cell.device->traffic();
}

// The host of the first member is observed more closely. The others begin to be before any message can come, which the
// verification's can at once, and end when all have agreed that the cell is over, so that none of it is missed.
void CellRunner::note_host(Cell& cell) {
  if (!cell.reads_host) return;
  if (cell.team.member() != 0 && cell.device != nullptr) {
    Traffic carried = traffic_between(cell.traffic_before, cell.device->traffic());
    drop_idle(carried, context_.interface ? context_.interface->name : std::string());
    note_above(carried, above_);
    cell.report.other_hosts[context_.host] = std::move(carried);
  }
  PortState changes = changes_between(cell.ports_before, read_port_state(ports_));
  if (!changes.empty()) cell.report.port_state[context_.host] = std::move(changes);
}

void CellRunner::take_samples(Cell& cell, bool always_bytes) {
  append(cell.report.warmup, to_phase(samples_.warmup, cell.probe, always_bytes));
  append(cell.report.measured, to_phase(samples_.measured, cell.probe, always_bytes));
}

void CellRunner::prepare_samples(const Cell& cell) {
  const PlanProbe& probe = cell.probe;
  const Family family = facts_of(probe.pattern).family;
  const bool is_timing = cell.door->is_local || (family != Family::pair && family != Family::matrix) ||
                         cell.team.member() == timing_member_of(probe.pattern, *cell.door) ||
                         facts_of(probe.pattern).stamps_both_ends;
  const bool is_flood = family == Family::flood;
  const bool with_bytes = (facts_of(probe.pattern).is_stream && !cell.door->is_local) || is_flood;
  // Each round of a flood has a warm-up of its own.
  const std::size_t rounds =
      is_flood ? rounds_of(probe.pattern, cell.team.size(), group_parameters(probe)) : std::size_t{1};
  if (is_timing) {
    samples_.prepare(probe.warmup_samples * rounds, std::max(probe.stopping.maximum_samples, rounds), with_bytes);
  }
}

void CellRunner::run_or_fail(Cell& cell) {
  cell.agreement.on([&] {
    cell.door = &door_of(cell.probe);
    cell.report.receive = receive_of(*cell.door, cell.probe.receive);
    check_parameters(cell.probe, *cell.door);
    cell.device = &devices_.lend(*cell.door);
    cell.device->forget_events();
    read_host(cell);
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
  const std::size_t least = cell.door->least_carried_bytes;
  if (cell.probe.message_bytes < least) {
    note_least(cell.report.findings.values, "datagram_bytes", static_cast<double>(least));
  }
  return {.probe = cell.probe,
          .team = cell.team,
          .clock_overhead_ns = context_.clock.overhead_ns,
          .token = token,
          .sequence = sequence,
          .samples = samples_,
          .counters = cell.report.counters,
          .findings = cell.report.findings,
          .clock = context_.global_clock.model(),
          .is_over = cell.is_over,
          .allocate =
              [device = cell.device, kind = memory_of(cell.probe), least,
               &values = cell.report.findings.values](std::size_t bytes) {
                MessageBuffer buffer = device->allocate(bytes == 0 ? 0 : std::max(bytes, least), kind);
                if (kind == MemoryKind::huge && bytes > 0) {
                  note_least(values, "huge_page_buffer_bytes", static_cast<double>(buffer.huge_bytes()));
                }
                return buffer;
              },
          .memory = memory_of(cell.probe),
          .patience_seconds = context_.plan.patience_seconds};
}

std::int64_t CellRunner::common_start(const Cell& cell) const {
  return cell.agreement.common_start(context_.global_clock.model().to_global(Clock::now()));
}

std::vector<PathCache::Key> CellRunner::keys_of(const Cell& cell, const std::vector<Link>& links) {
  const std::string told = told_to_layer(cell.probe);
  std::vector<PathCache::Key> keys;
  for (const Link& link : links) {
    keys.push_back(
        {cell.probe.layer, cell.team.world_rank(link.peer), link.flow, cell.report.receive, cell.door->name, told});
  }
  return keys;
}

std::vector<Endpoint::Member> CellRunner::endpoints_for(Cell& cell, const std::vector<Link>& links) {
  const int own_rank = context_.control.rank();
  const auto open = [&](const PathCache::Key& key, std::uint32_t generation) {
    return cell.device->open(site_of(context_.plan, own_rank, key, generation), cell.probe, cell.report.receive);
  };
  const auto check = [&](const Endpoint& end) {
    end.check_size(cell.probe.message_bytes, facts_of(cell.probe.pattern).smallest_message_bytes);
  };
  std::vector<Endpoint::Member> members =
      cell.agreement.open_paths(paths_, links, keys_of(cell, links), {.open = open, .check = check});
  note_attachment(cell, members);
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

void CellRunner::note_attachment(Cell& cell, const std::vector<Endpoint::Member>& members) const {
  for (const Endpoint::Member& member : members) {
    auto here = member.endpoint->rdma_attachment();
    if (!here) return;
    here->ranks = {context_.control.rank()};
    here->host = context_.host;
    if (!cell.report.rdma.empty()) {  // of this rank's earlier paths: the least of all of them is told
      const RdmaAttachment& least = cell.report.rdma.front();
      here->path_mtu = std::min(here->path_mtu, least.path_mtu);
      here->inline_bytes = std::min(here->inline_bytes, least.inline_bytes);
    }
    cell.report.rdma = {*here};
  }
}

void CellRunner::observed(Cell& cell, const std::function<void()>& measure) {
  if (!cell.is_observed) return measure();
  if (!cell.is_counted) return with_traffic(cell, measure);
  HostCounters& counters = context_.counters->host;
  const Counts host = cell.reads_host ? counters.read_host() : Counts{};
  const Counts machine = cell.reads_machine ? counters.read_machine() : Counts{};
  with_traffic(cell, measure);
  const auto note = [&](CounterScope scope, const Counts& before, const Counts& after) {
    cell.report.findings.counters.push_back(
        {.rank = context_.control.rank(), .scope = scope, .counts = counts_between(before, after)});
  };
  if (cell.reads_machine) note(CounterScope::machine, machine, counters.read_machine());
  if (cell.reads_host) note(CounterScope::host, host, counters.read_host());
}

void CellRunner::with_traffic(Cell& cell, const std::function<void()>& action) {
  if (cell.team.member() != 0) return action();
  const Traffic before = cell.device->traffic();
  const std::int64_t begin_unix_ns = unix_ns();
  action();
  cell.report.span = {begin_unix_ns, unix_ns()};
  cell.report.interfaces = traffic_between(before, cell.device->traffic());
  note_above(cell.report.interfaces, above_);
}

Outcome CellRunner::counted(Cell& cell, const std::function<Outcome()>& measure) {
  if (!cell.is_counted) return measure();
  Findings& findings = cell.report.findings;
  const MessagesPassed passed = findings.passed;
  const RankCounters::Reading before = context_.counters->rank.read();
  Outcome outcome = measure();
  Counts counts = context_.counters->rank.between(before, context_.counters->rank.read());
  if (findings.passed.sent != passed.sent || findings.passed.received != passed.received) {
    counts[Counter::messages_sent] = findings.passed.sent - passed.sent;
    counts[Counter::messages_received] = findings.passed.received - passed.received;
  }
  const auto own = std::ranges::find(findings.counters, CounterScope::rank, &CounterReport::scope);
  if (own != findings.counters.end()) {  // of earlier rounds or pairs
    add_counts(own->counts, counts);
  } else {
    findings.counters.push_back(
        {.rank = context_.control.rank(), .scope = CounterScope::rank, .counts = std::move(counts)});
  }
  return outcome;
}

void CellRunner::run_pair(Cell& cell) {
  if (cell.door->is_local) {
    std::unique_ptr<Endpoint> endpoint;
    cell.agreement.on([&] {
      endpoint = cell.device->open({}, cell.probe, cell.report.receive);
      Task task = task_of(cell, 0, endpoint->sequence);
      const auto pattern = endpoint->prepare(cell.probe.pattern, task);
      observed(cell, [&] { cell.report.outcome = counted(cell, [&] { return pattern->run(); }); });
    });
    return;
  }
  measure_pair(cell, PathEnd::kept);
}

void CellRunner::measure_pair(Cell& cell, PathEnd path_end) {
  const Link link{.peer = 1 - cell.team.member(), .flow = 0, .sends = true, .receives = true};
  PathLease lease(paths_, keys_of(cell, {link}));
  const std::vector<Endpoint::Member> members = endpoints_for(cell, {link});
  Endpoint& endpoint = *members.front().endpoint;
  Task task = task_of(cell, endpoint.token, endpoint.sequence);
  const auto watchdog = watchdog_for(cell);
  const std::unique_ptr<Prepared> pattern = prepared(
      cell, [&] { return endpoint.prepare_verification(task); },
      [&] { return endpoint.prepare(cell.probe.pattern, task); });
  cell.agreement.on([&] {
    observed(cell, [&] { cell.report.outcome = counted(cell, [&] { return pattern->run(); }); });
    cell.device->refuse_failed();
    note_granted(cell, members);
  });
  if (path_end == PathEnd::kept) lease.give_back();
}

std::unique_ptr<Prepared> CellRunner::prepared(const Cell& cell, const Preparing& verification,
                                               const Preparing& pattern) {
  std::unique_ptr<Prepared> verifying;
  std::unique_ptr<Prepared> measuring;
  const bool is_verified = cell.probe.verify_messages > 0;
  if (is_verified) cell.agreement.on([&] { verifying = verification(); });
  cell.agreement.on([&] {
    if (verifying) verifying->run();
    verifying.reset();  // its buffers make room for those of the pattern
    measuring = pattern();
  });
  return measuring;
}

void CellRunner::run_group(Cell& cell) {
  const PlanProbe& probe = cell.probe;
  GroupParameters parameters;
  cell.agreement.on([&] { parameters = group_parameters(probe); });
  const std::size_t rounds = cell.is_over ? 1 : rounds_of(probe.pattern, cell.team.size(), parameters);
  observed(cell, [&] {
    for (std::size_t round = 0; round < rounds; ++round) run_round(cell, parameters, round, rounds);
  });
}

void CellRunner::run_round(Cell& cell, const GroupParameters& parameters, std::size_t round, std::size_t rounds) {
  const PlanProbe& probe = cell.probe;
  const std::vector<Link> links = links_of(probe.pattern, cell.team.size(), cell.team.member(), parameters, round);
  PathLease lease(paths_, keys_of(cell, links));
  const std::vector<Endpoint::Member> members = endpoints_for(cell, links);
  std::uint32_t unused_sequence = 0;
  Task task = task_of(cell, context_.plan.token, unused_sequence);
  task.round = round;
  task.rounds = rounds;
  const auto watchdog = watchdog_for(cell);
  Endpoint* const any = members.empty() ? nullptr : members.front().endpoint;  // none where a rank is left over
  const std::unique_ptr<Prepared> pattern = prepared(
      cell, [&] { return any == nullptr ? nullptr : any->prepare_group_verification(members, task); },
      [&] { return any == nullptr ? nullptr : any->prepare_group(members, task); });
  if (facts_of(probe.pattern).family == Family::flood) task.start_ns = common_start(cell);
  cell.agreement.on([&] {
    note_granted(cell, members);
    try {
      cell.report.outcome = counted(cell, [&] { return pattern ? pattern->run() : rest_from_flood(task); });
      cell.device->refuse_failed();
    } catch (const Failure&) {
      // The others of a congestor flood until they are told to end, and some hear of it through this rank alone.
      if (task.is_over) wait_until_over(task);
      throw;
    }
  });
  lease.give_back();
}

void CellRunner::run_operation(Cell& cell) {
  std::uint32_t unused_sequence = 0;
  Task task = task_of(cell, context_.plan.token, unused_sequence);
  MPI_Comm communicator = MPI_COMM_NULL;
  std::unique_ptr<PreparedOperation> operation;
  try {
    cell.agreement.on([&] { communicator = communicator_of(cell.team); });
  } catch (const AgreedFailure&) {
    communicators_.erase(cell.team.world_ranks());  // whoever has one is alone with it, and frees none that others lack
    throw;
  }
  cell.agreement.on([&] { operation = prepare_operation(communicator, task); });
  cell.agreement.on([&] { operation->open(); });
  try {
    cell.agreement.on([&] {
      operation->verify();
      refuse_wrong(task.counters);
    });
    task.start_ns = common_start(cell);
    cell.agreement.on(
        [&] { observed(cell, [&] { cell.report.outcome = counted(cell, [&] { return operation->run(); }); }); });
  } catch (const AgreedFailure&) {
    operation->close();
    throw;
  }
  operation->close();
}

MPI_Comm CellRunner::communicator_of(const CellTeam& team) {
  MPI_Comm& communicator = communicators_.try_emplace(team.world_ranks(), MPI_COMM_NULL).first->second;
  if (communicator != MPI_COMM_NULL) return communicator;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group ours = MPI_GROUP_NULL;
  MPI_Comm_group(context_.data_communicator, &all);
  MPI_Group_incl(all, static_cast<int>(team.size()), team.world_ranks().expanded().data(), &ours);
  const int error = MPI_Comm_create_group(context_.data_communicator, ours, 0, &communicator);
  MPI_Group_free(&ours);
  MPI_Group_free(&all);
  check_mpi(error, "MPI_Comm_create_group");
  return communicator;
}

CellRunner::~CellRunner() {
  for (auto& [ranks, communicator] : communicators_) {
    if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
  }
}

}  // namespace fabricbench
