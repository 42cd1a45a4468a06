#include "core/report.hpp"

#include <array>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
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

/// A series as the differences between neighbours, seven bits a byte, the lowest first (LEB128), those below 0 in odd
/// numbers: channels of very many ranks are most of what rank 0's link carries, and neighbours resemble each other.
template <class Value>
void append_series(std::string& payload, const std::vector<Value>& values) {
  constexpr std::uint64_t more = 0x80;
  std::string bytes;
  bytes.reserve(values.size() * 3);
  std::uint64_t before = 0;
  for (const Value value : values) {
    const std::uint64_t difference = static_cast<std::uint64_t>(value) - before;
    before = static_cast<std::uint64_t>(value);
    const bool is_below = static_cast<std::int64_t>(difference) < 0;
    std::uint64_t left = is_below ? ~(difference << 1U) : difference << 1U;
    for (; left >= more; left >>= 7U) bytes += static_cast<char>(left | more);
    bytes += static_cast<char>(left);
  }
  append_part(payload, bytes);
}
template <class Value>
std::vector<Value> take_series(std::string_view& payload) {
  constexpr std::uint64_t more = 0x80;
  constexpr unsigned last_shift = 63;
  const std::string_view bytes = take_part(payload);
  std::vector<Value> values;
  std::uint64_t before = 0;
  std::uint64_t number = 0;
  unsigned shift = 0;
  for (const char byte : bytes) {
    const auto bits = static_cast<std::uint8_t>(byte);
    if (shift > last_shift) throw ControlError("a number of a series has more than 64 bits");
    number |= (bits & (more - 1)) << shift;
    shift += 7;
    if ((bits & more) != 0) continue;
    before += (number & 1U) != 0 ? ~(number >> 1U) : number >> 1U;
    values.push_back(static_cast<Value>(before));
    number = 0;
    shift = 0;
  }
  if (shift != 0) throw ControlError("a series ends within a number");
  return values;
}

void append_traffic(std::string& payload, const Traffic& traffic) {
  append_values(payload, std::vector<std::uint64_t>{traffic.size()});
  for (const auto& [name, bytes] : traffic) {
    append_part(payload, name);
    append_values(payload, std::vector<std::uint64_t>{bytes.sent, bytes.received, bytes.is_counted ? 1U : 0U,
                                                      bytes.above.size()});
    for (const std::string& one : bytes.above) append_part(payload, one);
  }
}

Traffic take_traffic(std::string_view& payload) {
  Traffic traffic;
  for (std::uint64_t left = take_values<std::uint64_t>(payload).at(0); left > 0; --left) {
    InterfaceBytes& bytes = traffic[std::string(take_part(payload))];
    const auto numbers = take_values<std::uint64_t>(payload);
    bytes.sent = numbers.at(0);
    bytes.received = numbers.at(1);
    bytes.is_counted = numbers.at(2) != 0;
    for (std::uint64_t above = numbers.at(3); above > 0; --above) bytes.above.emplace_back(take_part(payload));
  }
  return traffic;
}

void append_hosts(std::string& payload, const HostTraffic& hosts) {
  append_values(payload, std::vector<std::uint64_t>{hosts.size()});
  for (const auto& [host, traffic] : hosts) {
    append_part(payload, host);
    append_traffic(payload, traffic);
  }
}

HostTraffic take_hosts(std::string_view& payload) {
  HostTraffic hosts;
  for (std::uint64_t left = take_values<std::uint64_t>(payload).at(0); left > 0; --left) {
    std::string host(take_part(payload));
    hosts.emplace_hint(hosts.end(), std::move(host), take_traffic(payload));
  }
  return hosts;
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
    append_series(payload, channel.time_ns);
    append_series(payload, channel.bytes);
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
    channel.time_ns = take_series<std::int64_t>(payload);
    channel.bytes = take_series<std::uint64_t>(payload);
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
                           {"port_state", port_state},
                           {"rdma", rdma},
                           {"span", span ? json{span->begin_unix_ns, span->end_unix_ns} : json()},
                           {"has_parts", has_parts},
                       }));
  append_traffic(payload, interfaces);
  append_hosts(payload, other_hosts);
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
  report.port_state = value.at("port_state").get<PortStates>();
  report.rdma = value.at("rdma").get<std::vector<RdmaAttachment>>();
  if (const json& span = value.at("span"); !span.is_null()) report.span = {span.at(0), span.at(1)};
  report.has_parts = value.at("has_parts");
  report.interfaces = take_traffic(payload);
  report.other_hosts = take_hosts(payload);
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

}  // namespace fabricbench
