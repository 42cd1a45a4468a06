#include "core/record_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <nlohmann/json.hpp>
#include <span>

#include "base/json_text.hpp"
#include "base/program.hpp"

namespace fabricbench {
namespace {

using Line = nlohmann::ordered_json;

// Lines of some 100 kB: long enough to be cheap, short enough to be read one by one.
constexpr std::size_t samples_per_line = 8192;
constexpr std::size_t stages_per_line = 1024;

void append_number(std::string& text, std::integral auto number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

template <std::integral Number>
void append_list(std::string& text, std::span<const Number> numbers) {
  text += '[';
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += ',';
    append_number(text, numbers[i]);
  }
  text += ']';
}

Line to_json(const Parameters& parameters) {
  Line line = Line::object();
  for (const auto& [name, value] : parameters) {
    std::visit([&](const auto& held) { line[name] = held; }, value);
  }
  return line;
}

Line to_json(const PlanCongestor& congestor) {
  return {{"layer", name_of(congestor.layer)},           {"pattern", name_of(congestor.pattern)},
          {"message_bytes", congestor.message_bytes},    {"ranks", congestor.ranks},
          {"parameters", to_json(congestor.parameters)}, {"is_idle", congestor.is_idle}};
}

/// The ranks that really take part.
std::vector<int> ranks_of(const PlanProbe& probe) {
  if (probe.layer == Layer::memory) return {probe.ranks.front()};
  return probe.ranks;
}

}  // namespace

void RecordWriter::write_header(const Plan& plan, const std::vector<nlohmann::json>& ranks, const ClockInfo& clock,
                                const std::string& mpi_library, const nlohmann::json& not_counted) {
  Line line({{"type", "header"},
             {"schema", "fabricbench/record/1"},
             {"launch_id", plan.launch_id},
             {"fabric", plan.fabric.name},
             {"probe_version", version},
             {"mpi_library", mpi_library},
             {"started_unix_ns", unix_ns()},
             {"ranks", ranks},
             {"clock",
              {{"name", clock.name},
               {"resolution_ns", clock.resolution_ns},
               {"overhead_ns", clock.overhead_ns},
               {"loop_floor_ns", clock.loop_floor_ns}}}});
  if (!not_counted.empty()) line["not_counted"] = not_counted;
  file_.add(line);
  file_.flush();
}

void RecordWriter::write_clock(const ClockModel& clock, int rank, std::string_view phase) {
  constexpr double ppb = 1e9;
  file_.add({{"type", "clock"},
             {"rank", rank},
             {"phase", phase},
             {"offset_ns", clock.offset_ns},
             {"drift_ppb", clock.drift * ppb},
             {"at_ns", clock.at_ns},
             {"error_ns", clock.error_ns},
             {"drift_error_ppb", clock.drift_error * ppb},
             {"is_shared", clock.is_shared},
             {"estimated_offset_ns", clock.estimated_offset_ns},
             {"estimated_drift_ppb", clock.estimated_drift * ppb},
             {"estimated_error_ns", clock.estimated_error_ns},
             {"exchanges", clock.exchanges}});
}

void RecordWriter::write_samples(int cell, std::string_view phase, std::size_t begin, const PhaseSamples& samples,
                                 std::span<const std::uint32_t> missed) {
  std::string text;
  const std::span<const std::uint64_t> times = samples.time_ns;
  const std::span<const std::uint64_t> bytes = samples.bytes;
  for (std::size_t first = 0; first < times.size(); first += samples_per_line) {
    const std::size_t count = std::min(samples_per_line, times.size() - first);
    text += R"({"type":"samples","cell":)";
    append_number(text, static_cast<std::uint64_t>(cell));
    text.append(R"(,"phase":")").append(phase).append(R"(","first_index":)");
    append_number(text, begin + first);
    text += R"(,"time_ns":)";
    append_list(text, times.subspan(first, count));
    if (!bytes.empty()) {
      text += R"(,"bytes":)";
      append_list(text, bytes.subspan(first, count));
    }
    std::vector<std::uint32_t> here;
    for (const std::uint32_t position : missed) {
      if (position >= first && position < first + count) here.push_back(position - static_cast<std::uint32_t>(first));
    }
    if (!here.empty()) {
      text += R"(,"missed":)";
      append_list(text, std::span<const std::uint32_t>(here));
    }
    text += "}\n";
  }
  file_.add_text(text);
}

void RecordWriter::write_channel(int cell, const ChannelReport& channel) {
  std::string text = R"({"type":"channel","cell":)";
  append_number(text, cell);
  text += R"(,"source":)";
  append_number(text, channel.source);
  text += R"(,"destination":)";
  append_number(text, channel.destination);
  text += R"(,"flow":)";
  append_number(text, channel.flow);
  text += R"(,"round":)";
  append_number(text, channel.round);
  text.append(R"(,"quantity":")").append(name_of(channel.quantity)).append(R"(","time_ns":)");
  append_list(text, std::span(channel.time_ns));
  text += R"(,"bytes":)";
  channel.bytes.empty() ? void(text += "null") : append_list(text, std::span(channel.bytes));
  text += R"(,"sent":)";
  append_number(text, channel.sent);
  text += R"(,"lost":)";
  append_number(text, channel.lost);
  text += "}\n";
  file_.add_text(text);
}

void RecordWriter::write_stages(int cell, const StageReport& report) {
  nlohmann::json busiest;
  if (const auto& one = report.busiest) {
    busiest = {{"process", one->process}, {"share", one->share}, {"is_realtime", one->is_realtime}};
  }
  const std::span<const StageStamps> all = report.messages;
  for (std::size_t first = 0; first < all.size(); first += stages_per_line) {
    const std::span<const StageStamps> here = all.subspan(first, std::min(stages_per_line, all.size() - first));
    const std::int64_t base_ns = here.front().before;
    std::string text = R"({"type":"stages","cell":)";
    append_number(text, cell);
    text += R"(,"rank":)";
    append_number(text, report.rank);
    text.append(R"(,"leads":)").append(report.leads ? "true" : "false");
    text.append(R"(,"refused":)").append(json_text(nlohmann::json(report.refused)));
    text.append(R"(,"busiest":)").append(json_text(busiest));
    text += R"(,"base_unix_ns":)";
    append_number(text, base_ns);
    const auto append_column = [&](std::string_view name, std::int64_t StageStamps::* column, std::int64_t base) {
      text.append(",\"").append(name).append("\":[");
      for (const StageStamps& one : here) {
        if (&one != here.data()) text += ',';
        if (one.*column == 0 && base != 0) {
          text += "null";
        } else {
          append_number(text, one.*column - base);
        }
      }
      text += ']';
    };
    const auto append_seen = [&](std::string_view name, std::int64_t StageStamps::* column) {
      if (std::ranges::any_of(here, [&](const StageStamps& one) { return one.*column != 0; }))
        append_column(name, column, base_ns);
    };
    append_column("number", &StageStamps::number, 0);
    append_column("before_ns", &StageStamps::before, base_ns);
    append_seen("asked_ns", &StageStamps::asked);
    append_seen("called_ns", &StageStamps::called);
    append_column("scheduled_ns", &StageStamps::scheduled, base_ns);
    append_column("departed_ns", &StageStamps::departed, base_ns);
    append_column("acknowledged_ns", &StageStamps::acknowledged, base_ns);
    append_column("arrived_ns", &StageStamps::arrived, base_ns);
    append_column("resumed_ns", &StageStamps::resumed, base_ns);
    append_column("waited_ns", &StageStamps::waited, 0);
    append_seen("drained_ns", &StageStamps::drained);
    append_column("received_ns", &StageStamps::received, base_ns);
    append_column("round_trip_ns", &StageStamps::round_trip, 0);
    text += "}\n";
    file_.add_text(text);
  }
}

void RecordWriter::write_counters(int cell, const CounterReport& report) {
  Line counts = Line::object();
  for (const auto& [counter, count] : report.counts) counts[std::string(name_of(counter))] = count;
  file_.add({{"type", "counters"},
             {"cell", cell},
             {"rank", report.rank},
             {"scope", name_of(report.scope)},
             {"counts", std::move(counts)}});
}

void RecordWriter::write_failed_pair(int cell, const PairFailure& pair) {
  file_.add({{"type", "pair_failed"},
             {"cell", cell},
             {"source", pair.source},
             {"destination", pair.destination},
             {"code", name_of(pair.code)},
             {"reason", pair.reason}});
}

void RecordWriter::open_cell(const PlanProbe& probe, const CellReport& report) {
  const bool has_samples = !report.warmup.time_ns.empty() || !report.measured.time_ns.empty();
  warmup_ = report.warmup.time_ns.size();
  measured_ = report.measured.time_ns.size();
  if (!report.failure || has_samples || report.has_parts) {
    const bool is_stream = facts_of(probe.pattern).is_stream && probe.layer != Layer::memory;
    Line line({{"type", "cell"},
               {"id", probe.id},
               {"layer", name_of(probe.layer)},
               {"pattern", name_of(probe.pattern)},
               {"message_bytes", probe.message_bytes},
               {"receive", name_of(report.receive)},
               {"metric", name_of(facts_of(probe.pattern).metric)},
               {"ranks", ranks_of(probe)},
               {"messages_per_sample", is_stream ? probe.messages_per_sample : 1},
               {"operations_per_sample", report.outcome.operations_per_sample},
               {"bytes_per_sample", report.outcome.bytes_per_sample},
               {"parameters", to_json(probe.parameters)},
               {"channels", report.outcome.channels}});
    if (probe.congestor) line["congestor"] = to_json(*probe.congestor);
    file_.add(line);
    write_samples(probe.id, "warmup", 0, report.warmup, {});
    write_samples(probe.id, "measured", 0, report.measured, report.findings.missed);
  }
}

void RecordWriter::write_parts(const PlanProbe& probe, const CellParts& parts) {
  write_samples(probe.id, "warmup", warmup_, parts.warmup, {});
  write_samples(probe.id, "measured", measured_, parts.measured, {});
  warmup_ += parts.warmup.time_ns.size();
  measured_ += parts.measured.time_ns.size();
  for (const ChannelReport& channel : parts.channels) write_channel(probe.id, channel);
  for (const PairFailure& pair : parts.failed_pairs) write_failed_pair(probe.id, pair);
  for (const StageReport& stages : parts.stages) write_stages(probe.id, stages);
  for (const CounterReport& counters : parts.counters) write_counters(probe.id, counters);
  file_.flush_much();
}

void RecordWriter::close_cell(const PlanProbe& probe, const CellReport& report) {
  if (report.failure) {
    write_failed(probe, *report.failure, report);
  } else {
    write_end(probe, report);
  }
  file_.flush();
}

void RecordWriter::write_end(const PlanProbe& probe, const CellReport& report) {
  ++cells_;
  const Counters& counters = report.counters;
  Line line({{"type", "cell_end"},
             {"cell", probe.id},
             {"stop", name_of(report.outcome.stop.value_or(StopReason::time))},
             {"warmup", warmup_},
             {"measured", measured_},
             {"seconds", report.outcome.seconds},
             {"sent", counters.sent},
             {"lost", counters.lost},
             {"reordered", counters.reordered},
             {"duplicated", counters.duplicated},
             {"corrupted", counters.corrupted},
             {"verified", counters.verified},
             {"missed", report.findings.missed.size()},
             {"values", report.findings.values},
             {"interfaces", report.interfaces}});
  if (!report.port_state.empty()) line["port_state"] = report.port_state;
  if (!report.rdma.empty()) line["rdma"] = nlohmann::json(report.rdma);
  if (report.span) {
    line["begin_unix_ns"] = report.span->begin_unix_ns;
    line["end_unix_ns"] = report.span->end_unix_ns;
  }
  if (report.other_hosts.empty()) return file_.add(line);
  // Of very many hosts: a tree of all of them would take longer to build than to write.
  std::string text = json_text(line);
  text.pop_back();
  text += R"(,"other_hosts":{)";
  for (const auto& [host, traffic] : report.other_hosts) {
    text.append(json_text(Line(host))).append(1, ':').append(json_text(Line(traffic))).append(1, ',');
  }
  text.back() = '}';
  file_.add_text(text += "}\n");
}

void RecordWriter::write_failed(const PlanProbe& probe, const CellFailure& failure, const CellReport& report) {
  ++failed_;
  Line line({{"type", "cell_failed"},
             {"cell", probe.id},
             {"layer", name_of(probe.layer)},
             {"pattern", name_of(probe.pattern)},
             {"message_bytes", probe.message_bytes},
             {"code", name_of(failure.code)},
             {"reason", failure.reason}});
  if (!report.findings.values.empty()) line["values"] = report.findings.values;
  if (!report.port_state.empty()) line["port_state"] = report.port_state;
  if (!report.rdma.empty()) line["rdma"] = nlohmann::json(report.rdma);
  file_.add(line);
}

void RecordWriter::write_footer() {
  file_.add({{"type", "footer"}, {"finished_unix_ns", unix_ns()}, {"cells", cells_}, {"failed", failed_}});
  file_.close();
}

}  // namespace fabricbench
