#include "core/report.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

json to_json(const PhaseSamples& samples) { return {{"time_ns", samples.time_ns}, {"bytes", samples.bytes}}; }

PhaseSamples samples_from(const json& value) {
  return {value["time_ns"].get<std::vector<std::uint64_t>>(), value["bytes"].get<std::vector<std::uint64_t>>()};
}

}  // namespace

json to_json(const std::optional<CellFailure>& failure) {
  if (!failure) return nullptr;
  return {{"code", name_of(failure->code)}, {"reason", failure->reason}};
}

std::optional<CellFailure> failure_from(const json& value) {
  if (value.is_null()) return std::nullopt;
  return CellFailure{value_of<FailureCode>(value["code"].get<std::string>()).value_or(FailureCode::error),
                     value["reason"].get<std::string>()};
}

std::string pack(const CellReport& report) {
  const Counters& counters = report.counters;
  json interfaces = json::object();
  for (const auto& [name, bytes] : report.interfaces) interfaces[name] = {bytes.sent, bytes.received};
  const json value{
      {"failure", to_json(report.failure)},
      {"stop", report.outcome.stop ? json(name_of(*report.outcome.stop)) : json()},
      {"seconds", report.outcome.seconds},
      {"operations_per_sample", report.outcome.operations_per_sample},
      {"bytes_per_sample", report.outcome.bytes_per_sample},
      {"counters",
       {counters.sent, counters.lost, counters.reordered, counters.duplicated, counters.corrupted, counters.verified}},
      {"receive", name_of(report.receive)},
      {"warmup", to_json(report.warmup)},
      {"measured", to_json(report.measured)},
      {"interfaces", interfaces},
  };
  const std::vector<std::uint8_t> bytes = json::to_cbor(value);
  return {bytes.begin(), bytes.end()};
}

CellReport unpack_report(const std::string& bytes) {
  const json value = json::from_cbor(bytes);
  CellReport report;
  report.failure = failure_from(value["failure"]);
  if (!value["stop"].is_null()) report.outcome.stop = value_of<StopReason>(value["stop"].get<std::string>());
  report.outcome.seconds = value["seconds"];
  report.outcome.operations_per_sample = value["operations_per_sample"];
  report.outcome.bytes_per_sample = value["bytes_per_sample"];
  const json& counters = value["counters"];
  report.counters = {counters[0], counters[1], counters[2], counters[3], counters[4], counters[5]};
  report.receive = value_of<Receive>(value["receive"].get<std::string>()).value_or(Receive::blocking);
  report.warmup = samples_from(value["warmup"]);
  report.measured = samples_from(value["measured"]);
  for (const auto& [name, pair] : value["interfaces"].items()) report.interfaces[name] = {pair[0], pair[1]};
  return report;
}

CellReport merge(const std::vector<CellReport>& reports) {
  CellReport merged = reports.front();
  for (std::size_t i = 1; i < reports.size(); ++i) {
    const CellReport& other = reports[i];
    if (!merged.failure) merged.failure = other.failure;
    if (other.outcome.stop) merged.outcome = other.outcome;
    merged.counters.add(other.counters);
    if (!other.warmup.time_ns.empty()) merged.warmup = other.warmup;
    if (!other.measured.time_ns.empty()) merged.measured = other.measured;
    if (merged.interfaces.empty()) merged.interfaces = other.interfaces;
  }
  return merged;
}

}  // namespace fabricbench
