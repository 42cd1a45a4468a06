#include "probe/cell_runner.hpp"

#include <algorithm>

namespace fabricbench {
namespace {

using nlohmann::json;

/// Thrown on every rank of a cell once all know of the failure.
struct AgreedFailure {
  CellFailure failure;
};

PhaseSamples to_phase(const Series& series, const PlanProbe& probe, Timebase timebase) {
  PhaseSamples samples;
  samples.time_ns.reserve(series.size());
  for (const std::uint64_t ticks : series.ticks()) samples.time_ns.push_back(timebase.to_ns(ticks));
  const auto is_incomplete = [&](std::uint32_t messages) { return messages != probe.messages_per_sample; };
  if (probe.pattern == Pattern::stream && std::ranges::any_of(series.messages(), is_incomplete)) {
    for (const std::uint32_t messages : series.messages()) samples.bytes.push_back(messages * probe.message_bytes);
  }
  return samples;
}

std::map<std::string, InterfaceBytes> difference(const std::map<std::string, InterfaceBytes>& before) {
  std::map<std::string, InterfaceBytes> carried;
  for (const auto& [name, after] : read_interface_counters()) {
    const auto found = before.find(name);
    const InterfaceBytes start = found == before.end() ? InterfaceBytes{} : found->second;
    carried[name] = {after.sent - start.sent, after.received - start.received};
  }
  return carried;
}

void check_parameters(const PlanProbe& probe, const LayerEntry& layer) {
  for (const auto& [key, value] : probe.parameters.items()) {
    if (std::ranges::find(layer.parameters, key) != layer.parameters.end()) continue;
    std::string known;
    for (const std::string& name : layer.parameters) known += (known.empty() ? "" : ", ") + name;
    throw Failure(FailureCode::unsupported, "parameter '" + key + "' is unknown to layer " +
                                                std::string(name_of(probe.layer)) +
                                                (known.empty() ? ", which has none" : "; known: " + known));
  }
}

}  // namespace

std::vector<int> members_of(const PlanProbe& probe) {
  return layer_entry(probe.layer).is_local ? std::vector<int>{probe.ranks.front()} : probe.ranks;
}

CellFailure CellRunner::named(const Failure& failure) const {
  return {failure.code(),
          "rank " + std::to_string(surroundings_.control.rank()) + " on " + surroundings_.host + ": " + failure.what()};
}

std::vector<json> CellRunner::agree(const CellTeam& team, const std::function<json()>& action) const {
  json own;
  try {
    own["said"] = action();
    own["failure"] = nullptr;
  } catch (const Failure& failure) {
    own["failure"] = to_json(named(failure));
  } catch (const std::bad_alloc&) {
    own["failure"] =
        to_json(named(Failure(FailureCode::error, "out of memory: use smaller messages or fewer samples")));
  }
  std::vector<json> all;
  std::optional<CellFailure> failure;
  for (const std::string& text : team.exchange(own.dump())) {
    all.push_back(json::parse(text));
    const auto found = failure_from(all.back()["failure"]);
    // Who waits for a rank that has failed times out: of several failures the others are the cause.
    if (found && (!failure || failure->code == FailureCode::timeout)) failure = found;
    all.back() = json(all.back()["said"]);
  }
  if (failure) throw AgreedFailure{*failure};
  return all;
}

CellReport CellRunner::run(const PlanProbe& probe, int ordinal) {
  const CellTeam team(surroundings_.control, members_of(probe), ordinal);
  CellReport report;
  try {
    run_or_fail(probe, team, report);
  } catch (const AgreedFailure& agreed) {
    report.failure = agreed.failure;
    // What failed is not used again: the next cell of this kind starts afresh on all its ranks.
    std::erase_if(endpoints_, [&](const auto& entry) { return std::get<Layer>(entry.first) == probe.layer; });
  }
  report.warmup = to_phase(samples_.warmup, probe, surroundings_.clock.timebase);
  report.measured = to_phase(samples_.measured, probe, surroundings_.clock.timebase);
  return report;
}

void CellRunner::prepare_samples(const PlanProbe& probe, std::size_t member) {
  const bool is_timing = layer_entry(probe.layer).is_local || member == pattern_entry(probe.pattern).timing_member;
  const bool with_messages = probe.pattern == Pattern::stream && !layer_entry(probe.layer).is_local;
  samples_.warmup.prepare(is_timing ? probe.warmup_samples : 0, with_messages);
  samples_.measured.prepare(is_timing ? probe.stopping.maximum_samples : 0, with_messages);
}

void CellRunner::run_or_fail(const PlanProbe& probe, const CellTeam& team, CellReport& report) {
  const LayerEntry& layer = layer_entry(probe.layer);
  samples_.warmup.prepare(0, false);
  samples_.measured.prepare(0, false);
  agree(team, [&]() -> json {
    report.receive = layer.receive(probe.receive);
    check_parameters(probe, layer);
    prepare_samples(probe, team.member());
    return nullptr;
  });
  Endpoint& endpoint = endpoint_for(probe, team, layer, report.receive);
  measure(probe, team, endpoint, report);
  if (layer.is_local) endpoints_.erase({probe.layer, team.world_rank(0), report.receive});
}

Endpoint& CellRunner::endpoint_for(const PlanProbe& probe, const CellTeam& team, const LayerEntry& layer,
                                   Receive receive) {
  const std::size_t peer = team.size() == 1 ? 0 : 1 - team.member();
  const Key key{probe.layer, team.world_rank(peer), receive};
  if (const auto found = endpoints_.find(key); found != endpoints_.end()) return *found->second;
  const Site site{.interface = surroundings_.interface,
                  .token = surroundings_.plan.token,
                  .peer_rank = team.world_rank(peer),
                  .is_first = team.member() == 0,
                  .communicator = surroundings_.data_communicator};
  std::unique_ptr<Endpoint> endpoint;
  const std::vector<json> addresses = agree(team, [&]() -> json {
    endpoint = layer.open(site, probe);
    return endpoint->address();
  });
  agree(team, [&]() -> json {
    endpoint->meet(addresses[peer].get<std::string>());
    return nullptr;
  });
  return *(endpoints_[key] = std::move(endpoint));
}

void CellRunner::measure(const PlanProbe& probe, const CellTeam& team, Endpoint& endpoint, CellReport& report) {
  const std::vector<json> sequences = agree(team, [&]() -> json {
    endpoint.check_size(probe.message_bytes, pattern_entry(probe.pattern).smallest_message);
    return endpoint.sequence;
  });
  for (const json& sequence : sequences) endpoint.sequence = std::max(endpoint.sequence, sequence.get<std::uint32_t>());
  Task task{.probe = probe,
            .team = team,
            .timebase = surroundings_.clock.timebase,
            .clock_overhead_ns = surroundings_.clock.overhead_ns,
            .token = surroundings_.plan.token,
            .sequence = endpoint.sequence,
            .samples = samples_,
            .counters = report.counters};
  agree(team, [&]() -> json {
    endpoint.verify_messages(task);
    return nullptr;
  });
  agree(team, [&]() -> json {
    const auto before = team.member() == 0 ? read_interface_counters() : std::map<std::string, InterfaceBytes>{};
    report.outcome = endpoint.run(probe.pattern, surroundings_.clock.is_counter, task);
    if (team.member() == 0) report.interfaces = difference(before);
    return nullptr;
  });
}

}  // namespace fabricbench
