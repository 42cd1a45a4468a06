#include "core/report.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

namespace fabricbench {
namespace {

using nlohmann::json;

constexpr std::int32_t no_failure = -1;

/// The value of a word. Throws where there is none such.
template <class Enum>
Enum word_from(const json& value) {
  const auto& word = value.get_ref<const std::string&>();
  if (const auto found = value_of<Enum>(word)) return *found;
  throw ControlError("it has an unknown word, " + word);
}

/// Values as a part of a message, apart from its tree: there may be millions of them.
template <class Value>
void append_values(std::string& payload, const std::vector<Value>& values) {
  append_part(payload, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)});
}
template <class Value>
std::vector<Value> take_values(std::string_view& payload) {
  return unpack_values<Value>(take_part(payload));
}

void append_samples(std::string& payload, const PhaseSamples& samples) {
  append_values(payload, samples.time_ns);
  append_values(payload, samples.bytes);
  append_values(payload, samples.batches);
}

PhaseSamples take_samples(std::string_view& payload) {
  PhaseSamples samples;
  samples.time_ns = take_values<std::uint64_t>(payload);
  samples.bytes = take_values<std::uint64_t>(payload);
  samples.batches = take_values<Batch>(payload);
  return samples;
}

/// What of a channel is not its series, as numbers: a launch of very many ranks has several of each.
using ChannelHead = std::array<std::uint64_t, 7>;

ChannelHead head_of(const ChannelReport& channel) {
  return {static_cast<std::uint64_t>(channel.source),
          static_cast<std::uint64_t>(channel.destination),
          channel.flow,
          channel.round,
          static_cast<std::uint64_t>(channel.quantity),
          channel.sent,
          channel.lost};
}

void append_channels(std::string& payload, const std::vector<ChannelReport>& channels) {
  append_values(payload, std::vector<std::uint64_t>{channels.size()});
  for (const ChannelReport& channel : channels) {
    append_values(payload, std::vector<ChannelHead>{head_of(channel)});
    append_values(payload, channel.time_ns);
    append_values(payload, channel.bytes);
  }
}

std::vector<ChannelReport> take_channels(std::string_view& payload) {
  std::vector<ChannelReport> channels;
  for (std::uint64_t left = take_values<std::uint64_t>(payload).at(0); left > 0; --left) {
    const auto [source, destination, flow, round, quantity, sent, lost] = take_values<ChannelHead>(payload).at(0);
    if (quantity >= names_of<Quantity>.size())
      throw ControlError("there is no quantity of number " + std::to_string(quantity));
    ChannelReport& channel = channels.emplace_back();
    channel.source = static_cast<int>(source);
    channel.destination = static_cast<int>(destination);
    channel.flow = flow;
    channel.round = round;
    channel.quantity = static_cast<Quantity>(quantity);
    channel.sent = sent;
    channel.lost = lost;
    channel.time_ns = take_values<std::int64_t>(payload);
    channel.bytes = take_values<std::uint64_t>(payload);
  }
  return channels;
}

void append_stages(std::string& payload, const std::vector<StageReport>& stages) {
  append_values(payload, std::vector<std::uint64_t>{stages.size()});
  for (const StageReport& one : stages) {
    json busiest;
    if (one.busiest) busiest = {one.busiest->process, one.busiest->share, one.busiest->is_realtime};
    append_part(payload, pack_tree({one.rank, one.leads, one.refused, busiest}));
    append_values(payload, one.messages);
  }
}

std::vector<StageReport> take_stages(std::string_view& payload) {
  std::vector<StageReport> stages;
  for (std::uint64_t left = take_values<std::uint64_t>(payload).at(0); left > 0; --left) {
    const json head = unpack_tree(take_part(payload));
    StageReport& one = stages.emplace_back();
    one.rank = head.at(0);
    one.leads = head.at(1);
    one.refused = head.at(2).get<std::map<std::string, std::string>>();
    if (const json& busiest = head.at(3); !busiest.is_null()) {
      one.busiest = {.process = busiest.at(0), .share = busiest.at(1), .is_realtime = busiest.at(2)};
    }
    one.messages = take_values<StageStamps>(payload);
  }
  return stages;
}

void append_counters(std::string& payload, const std::vector<CounterReport>& counters) {
  json all = json::array();
  for (const CounterReport& one : counters) all.push_back({one.rank, name_of(one.scope), one.counts});
  append_part(payload, pack_tree(all));
}

std::vector<CounterReport> take_counters(std::string_view& payload) {
  std::vector<CounterReport> counters;
  for (const json& one : unpack_tree(take_part(payload))) {
    counters.push_back({one.at(0), word_from<CounterScope>(one.at(1)), one.at(2).get<Counts>()});
  }
  return counters;
}

void append_findings(std::string& payload, const Findings& findings) {
  json failed_pairs = json::array();
  for (const PairFailure& pair : findings.failed_pairs) {
    failed_pairs.push_back({pair.source, pair.destination, name_of(pair.code), pair.reason});
  }
  append_part(payload, pack_tree({{"failed_pairs", failed_pairs}, {"values", findings.values}}));
  append_values(payload, findings.missed);
  append_channels(payload, findings.channels);
  append_stages(payload, findings.stages);
  append_counters(payload, findings.counters);
}

Findings take_findings(std::string_view& payload) {
  const json tree = unpack_tree(take_part(payload));
  Findings findings;
  findings.values = tree.at("values").get<std::map<std::string, double>>();
  for (const json& each : tree.at("failed_pairs")) {
    findings.failed_pairs.push_back({each.at(0), each.at(1), word_from<FailureCode>(each.at(2)), each.at(3)});
  }
  findings.missed = take_values<std::uint32_t>(payload);
  findings.channels = take_channels(payload);
  findings.stages = take_stages(payload);
  findings.counters = take_counters(payload);
  return findings;
}

/// A call lasts as long as on its slowest rank; what not all ranks have is not complete.
void take_slowest(PhaseSamples& merged, const PhaseSamples& other) {
  const std::size_t count = std::min(merged.time_ns.size(), other.time_ns.size());
  merged.time_ns.resize(count);
  for (std::size_t i = 0; i < count; ++i) merged.time_ns[i] = std::max(merged.time_ns[i], other.time_ns[i]);
}

TurnEnds ends_of(const PhaseSamples& samples) {
  TurnEnds ends{.end_ns = {}, .batches = samples.batches};
  ends.end_ns.reserve(samples.time_ns.size());
  auto batch = samples.batches.begin();
  std::int64_t now_ns = 0;
  for (const std::uint64_t time_ns : samples.time_ns) {
    if (batch != samples.batches.end() && batch->first == ends.end_ns.size()) now_ns = (batch++)->start_ns;
    now_ns += static_cast<std::int64_t>(time_ns);
    ends.end_ns.push_back(now_ns);
  }
  return ends;
}

/// All ranks take the same batches; one that has failed has the first of them.
void take_last(TurnEnds& merged, const TurnEnds& other) {
  merged.end_ns.resize(std::min(merged.end_ns.size(), other.end_ns.size()));
  for (std::size_t i = 0; i < merged.end_ns.size(); ++i) {
    merged.end_ns[i] = std::max(merged.end_ns[i], other.end_ns[i]);
  }
  merged.batches.resize(std::min(merged.batches.size(), other.batches.size()));
  for (std::size_t i = 0; i < merged.batches.size(); ++i) {
    merged.batches[i].start_ns = std::max(merged.batches[i].start_ns, other.batches[i].start_ns);
  }
}

void join_turns(std::optional<TurnEnds>& merged, std::optional<TurnEnds> other) {
  if (!other) return;
  if (merged) {
    take_last(*merged, *other);
  } else {
    merged = std::move(other);
  }
}

/// Those of one rank; nothing where it took none.
std::optional<TurnEnds> turns_of(const PhaseSamples& samples) {
  if (samples.time_ns.empty()) return std::nullopt;
  return ends_of(samples);
}

/// A turn lasts from the end of the one before on its last rank to its own end on its last rank.
PhaseSamples turns_between(const TurnEnds& ends) {
  PhaseSamples turns;
  turns.time_ns.reserve(ends.end_ns.size());
  auto batch = ends.batches.begin();
  std::int64_t before_ns = 0;
  for (const std::int64_t end_ns : ends.end_ns) {
    if (batch != ends.batches.end() && batch->first == turns.time_ns.size()) before_ns = (batch++)->start_ns;
    turns.time_ns.push_back(static_cast<std::uint64_t>(end_ns - before_ns));
    before_ns = end_ns;
  }
  return turns;
}

/// A window of a flood holds what arrived everywhere. Ranks that only send have no windows. Times differ by a message
/// or so: they are summed up here, and their mean goes on.
void add_window(PhaseSamples& merged, const PhaseSamples& other) {
  const std::size_t count = std::min(merged.time_ns.size(), other.time_ns.size());
  merged.time_ns.resize(count);
  merged.bytes.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    merged.time_ns[i] += other.time_ns[i];
    merged.bytes[i] += other.bytes[i];
  }
}

void merge_samples(CellReport& merged, CellReport& other, Family family) {
  for (const auto phase : {&CellReport::warmup, &CellReport::measured}) {
    if ((other.*phase).time_ns.empty()) continue;
    if ((merged.*phase).time_ns.empty()) {
      merged.*phase = std::move(other.*phase);
    } else if (family == Family::operation) {
      take_slowest(merged.*phase, other.*phase);
    } else if (family == Family::flood) {
      add_window(merged.*phase, other.*phase);
    } else {
      merged.*phase = std::move(other.*phase);
    }
  }
}

/// Each once, in order.
void deduplicate(std::vector<std::uint32_t>& positions) {
  std::ranges::sort(positions);
  positions.erase(std::ranges::unique(positions).begin(), positions.end());
}

void merge_findings(Findings& merged, const Findings& other) {
  merged.channels.insert(merged.channels.end(), other.channels.begin(), other.channels.end());
  merged.failed_pairs.insert(merged.failed_pairs.end(), other.failed_pairs.begin(), other.failed_pairs.end());
  merged.missed.insert(merged.missed.end(), other.missed.begin(), other.missed.end());
  merged.stages.insert(merged.stages.end(), other.stages.begin(), other.stages.end());
  merged.counters.insert(merged.counters.end(), other.counters.begin(), other.counters.end());
  deduplicate(merged.missed);
  for (const auto& [name, value] : other.values) {
    if (name.ends_with("_buffer_bytes")) {
      note_least(merged.values, name, value);
    } else {
      merged.values.insert({name, value});
    }
  }
}

}  // namespace

std::string Verdict::pack() const {
  return failure ? pack_numbered(static_cast<std::int32_t>(failure->code), failure->reason)
                 : pack_numbered(no_failure, {});
}

Verdict Verdict::unpack(std::string_view payload) {
  const auto [code, reason] = unpack_numbered(payload);  // the code's place in its list
  if (code == no_failure && reason.empty()) return {};
  if (code < 0 || code >= std::ssize(names_of<FailureCode>)) {
    throw ControlError("there is no failure of number " + std::to_string(code));
  }
  return {CellFailure{static_cast<FailureCode>(code), std::string(reason)}};
}

std::string CellReport::pack() const {
  std::string payload;
  append_part(payload, pack_tree({
                           {"failure", failure ? json{name_of(failure->code), failure->reason} : json()},
                           {"stop", outcome.stop ? json(name_of(*outcome.stop)) : json()},
                           {"seconds", outcome.seconds},
                           {"operations_per_sample", outcome.operations_per_sample},
                           {"bytes_per_sample", outcome.bytes_per_sample},
                           {"channels_in_use", outcome.channels},
                           {"counters",
                            {counters.sent, counters.lost, counters.reordered, counters.duplicated, counters.corrupted,
                             counters.verified}},
                           {"receive", name_of(receive)},
                           {"interfaces", interfaces},
                           {"other_hosts", other_hosts},
                           {"port_state", port_state},
                           {"rdma", rdma},
                           {"span", span ? json{span->begin_unix_ns, span->end_unix_ns} : json()},
                           {"has_parts", has_parts},
                       }));
  append_samples(payload, warmup);
  append_samples(payload, measured);
  append_findings(payload, findings);
  return payload;
}

CellReport CellReport::unpack(std::string_view payload) {
  const json value = unpack_tree(take_part(payload));
  CellReport report;
  if (const json& failure = value.at("failure"); !failure.is_null()) {
    report.failure = CellFailure{word_from<FailureCode>(failure.at(0)), failure.at(1)};
  }
  if (const json& stop = value.at("stop"); !stop.is_null()) report.outcome.stop = word_from<StopReason>(stop);
  report.outcome.seconds = value.at("seconds");
  report.outcome.operations_per_sample = value.at("operations_per_sample");
  report.outcome.bytes_per_sample = value.at("bytes_per_sample");
  report.outcome.channels = value.at("channels_in_use");
  const json& counted = value.at("counters");
  report.counters = {counted.at(0), counted.at(1), counted.at(2), counted.at(3), counted.at(4), counted.at(5)};
  report.receive = word_from<Receive>(value.at("receive"));
  report.interfaces = value.at("interfaces").get<Traffic>();
  report.other_hosts = value.at("other_hosts").get<HostTraffic>();
  report.port_state = value.at("port_state").get<PortStates>();
  report.rdma = value.at("rdma").get<std::vector<RdmaAttachment>>();
  if (const json& span = value.at("span"); !span.is_null()) report.span = {span.at(0), span.at(1)};
  report.has_parts = value.at("has_parts");
  report.warmup = take_samples(payload);
  report.measured = take_samples(payload);
  report.findings = take_findings(payload);
  refuse_rest(payload);
  return report;
}

CellParts take_parts(CellReport& report, Family family) {
  CellParts parts;
  std::swap(parts.channels, report.findings.channels);
  std::swap(parts.failed_pairs, report.findings.failed_pairs);
  std::swap(parts.stages, report.findings.stages);
  std::swap(parts.counters, report.findings.counters);
  if (family == Family::matrix) {
    std::swap(parts.warmup, report.warmup);
    std::swap(parts.measured, report.measured);
  }
  report.has_parts = !parts.channels.empty() || !parts.failed_pairs.empty() || !parts.stages.empty() ||
                     !parts.counters.empty() || !parts.warmup.time_ns.empty() || !parts.measured.time_ns.empty();
  return parts;
}

std::string CellParts::pack() const {
  std::string payload;
  append_samples(payload, warmup);
  append_samples(payload, measured);
  append_findings(payload, {.channels = channels,
                            .failed_pairs = failed_pairs,
                            .missed = {},
                            .values = {},
                            .stages = stages,
                            .counters = counters});
  return payload;
}

CellParts CellParts::unpack(std::string_view payload) {
  CellParts parts;
  parts.warmup = take_samples(payload);
  parts.measured = take_samples(payload);
  Findings findings = take_findings(payload);
  refuse_rest(payload);
  parts.channels = std::move(findings.channels);
  parts.failed_pairs = std::move(findings.failed_pairs);
  parts.stages = std::move(findings.stages);
  parts.counters = std::move(findings.counters);
  return parts;
}

void note_least(std::map<std::string, double>& values, const std::string& name, double value) {
  const auto [place, is_first] = values.insert({name, value});
  if (!is_first) place->second = std::min(place->second, value);
}

void append(PhaseSamples& samples, const PhaseSamples& others) {
  const auto before = static_cast<std::uint32_t>(samples.time_ns.size());
  for (const Batch& batch : others.batches) samples.batches.push_back({before + batch.first, batch.start_ns});
  samples.time_ns.insert(samples.time_ns.end(), others.time_ns.begin(), others.time_ns.end());
  samples.bytes.insert(samples.bytes.end(), others.bytes.begin(), others.bytes.end());
}

CellMerge::CellMerge(Family family, CellReport report) : family_(family), merged_(std::move(report)) {
  ranks_ = {merged_->warmup.time_ns.empty() ? 0U : 1U, merged_->measured.time_ns.empty() ? 0U : 1U};
  deduplicate(merged_->findings.missed);
  if (family_ != Family::lockstep) return;
  warmup_ = turns_of(std::exchange(merged_->warmup, {}));
  measured_ = turns_of(std::exchange(merged_->measured, {}));
}

void CellMerge::join(CellMerge others) {
  pushed_ += others.pushed_;
  keepers_.append(others.keepers_);
  if (!others.merged_) return;
  for (std::size_t phase = 0; phase < ranks_.size(); ++phase) ranks_[phase] += others.ranks_[phase];
  join_turns(warmup_, std::move(others.warmup_));
  join_turns(measured_, std::move(others.measured_));
  if (!merged_) {
    merged_ = std::move(others.merged_);
    return;
  }
  CellReport& report = *others.merged_;
  if (!merged_->failure) merged_->failure = report.failure;
  if (report.outcome.stop && !merged_->outcome.stop) merged_->outcome = report.outcome;
  merged_->counters.add(report.counters);
  merge_samples(*merged_, report, family_);
  if (merged_->interfaces.empty()) merged_->interfaces = report.interfaces;
  merged_->other_hosts.merge(report.other_hosts);
  for (auto& [host, state] : report.port_state) merged_->port_state[host].merge(state);
  for (const RdmaAttachment& one : report.rdma) add_attachment(merged_->rdma, one);
  if (!merged_->span) merged_->span = report.span;
  merge_findings(merged_->findings, report.findings);
  merged_->has_parts = merged_->has_parts || report.has_parts;
}

bool CellMerge::push_parts(int rank, CellParts& parts, std::size_t most_bytes) {
  if (!merged_.value().has_parts) return false;
  const std::string packed = parts.pack();
  if (packed.size() > most_bytes) {
    keepers_.push_back(rank);
    return true;
  }
  append_part(pushed_, packed);
  parts = {};
  return false;
}

void CellMerge::for_each_pushed(const std::function<void(const CellParts&)>& act) const {
  for (std::string_view left = pushed_; !left.empty();) act(CellParts::unpack(take_part(left)));
}

CellReport CellMerge::finish() {
  CellReport merged = std::move(merged_.value());
  if (family_ == Family::lockstep) {
    merged.warmup = turns_between(warmup_.value_or(TurnEnds{}));
    merged.measured = turns_between(measured_.value_or(TurnEnds{}));
  }
  if (family_ == Family::flood) {
    for (std::uint64_t& time_ns : merged.warmup.time_ns) time_ns /= ranks_[0];
    for (std::uint64_t& time_ns : merged.measured.time_ns) time_ns /= ranks_[1];
  }
  std::erase_if(merged.findings.missed,
                [&](std::uint32_t position) { return position >= merged.measured.time_ns.size(); });
  return merged;
}

std::string CellMerge::pack() const {
  std::string payload;
  append_part(payload, pack_tree({{"family", name_of(family_)},
                                  {"ranks", ranks_},
                                  {"turns", {warmup_.has_value(), measured_.has_value()}},
                                  {"is_of_some", merged_.has_value()}}));
  append_part(payload, keepers_.pack());
  for (const std::optional<TurnEnds>* ends : {&warmup_, &measured_}) {
    if (!*ends) continue;
    append_values(payload, (*ends)->end_ns);
    append_values(payload, (*ends)->batches);
  }
  append_part(payload, pushed_);
  if (merged_) payload += merged_->pack();
  return payload;
}

CellMerge CellMerge::unpack(std::string_view payload) {
  const json head = unpack_tree(take_part(payload));
  CellMerge merge(word_from<Family>(head.at("family")));
  merge.ranks_ = head.at("ranks");
  merge.keepers_ = RankList::unpack(take_part(payload));
  std::size_t phase = 0;
  for (std::optional<TurnEnds>* ends : {&merge.warmup_, &merge.measured_}) {
    if (!head.at("turns").at(phase++).get<bool>()) continue;
    ends->emplace();
    (*ends)->end_ns = take_values<std::int64_t>(payload);
    (*ends)->batches = take_values<Batch>(payload);
  }
  merge.pushed_ = take_part(payload);
  if (head.at("is_of_some").get<bool>()) {
    merge.merged_ = CellReport::unpack(payload);
  } else {
    refuse_rest(payload);
  }
  return merge;
}

void join_windows(CellReport& report, std::uint64_t least_bytes) {
  PhaseSamples& windows = report.measured;
  const std::size_t count = windows.bytes.size();
  if (count == 0) return;
  const std::uint64_t total = std::accumulate(windows.bytes.begin(), windows.bytes.end(), std::uint64_t{0});
  // What all windows together hold, divided by what each is to hold; what is left over is spread, not dropped.
  const std::size_t samples = std::clamp<std::size_t>(total / std::max<std::uint64_t>(least_bytes, 1), 1, count);
  PhaseSamples joined;
  for (std::size_t i = 0; i < samples; ++i) {
    std::uint64_t time_ns = 0;
    std::uint64_t bytes = 0;
    for (std::size_t k = i * count / samples; k < (i + 1) * count / samples; ++k) {
      time_ns += windows.time_ns[k];
      bytes += windows.bytes[k];
    }
    joined.time_ns.push_back(time_ns);
    joined.bytes.push_back(bytes);
  }
  windows = std::move(joined);
  if (total == 0 && !report.failure) {
    report.failure = CellFailure{FailureCode::timeout,
                                 "nothing arrived while it was measured: does a message take longer than the cell's "
                                 "time? Give it more, or smaller messages"};
  }
  report.outcome.bytes_per_sample = std::max<std::uint64_t>(1, total / samples);
}

}  // namespace fabricbench
