#include "core/record_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/json_lines.hpp"
#include "tests/merging.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

/// As a rank on soft RoCE is attached.
RdmaAttachment attachment() {
  return {.ranks = {0},
          .host = "n0",
          .device = "rxe0",
          .port = 1,
          .driver = "rxe",
          .transport = RdmaTransport::roce_v2,
          .netdev = "fe0",
          .gid_index = 1,
          .gid = "0000:0000:0000:0000:0000:ffff:0a62:0001",
          .lid = 0,
          .port_mtu = 1024,
          .path_mtu = 1024,
          .inline_bytes = 64};
}

class RecordWriting : public testing::Test {
 protected:
  RecordWriting() {
    std::ifstream file(std::string(FIXTURES) + "/plan.json");
    plan = parse_plan(std::string(std::istreambuf_iterator<char>(file), {}));
    path = testing::TempDir() + "record-" + std::to_string(getpid()) + ".jsonl";
  }
  ~RecordWriting() override { std::filesystem::remove(path); }

  std::vector<json> write(const CellReport& report, const PlanProbe& probe, const CellParts& parts = {}) const {
    RecordWriter writer(path);
    writer.write_header(plan, {json{{"rank", 0}, {"host", "n0"}, {"pid", 1}, {"cpus", {0}}}}, clock, "An MPI",
                        json::array());
    writer.open_cell(probe, report);
    writer.write_parts(probe, parts);
    writer.close_cell(probe, report);
    writer.write_footer();
    return read_lines(path);
  }

  Plan plan;
  ClockInfo clock;
  std::string path;
};

TEST_F(RecordWriting, WritesTheFixturesKindsOfLinesWithTheirKeys) {
  // The older fixture has what every record has, the newer one what has come since.
  std::map<std::string, std::set<std::string>> needed;
  std::map<std::string, std::set<std::string>> known;
  for (const json& line : read_lines(std::string(FIXTURES) + "/record.jsonl")) {
    needed[line["type"]].merge(keys_of(line));
    known[line["type"]].merge(keys_of(line));
  }
  for (const json& line : read_lines(std::string(FIXTURES) + "/record-patterns.jsonl")) {
    known[line["type"]].merge(keys_of(line));
  }
  CellReport report;
  report.outcome = {.stop = StopReason::width, .seconds = 0.1, .bytes_per_sample = 65536};
  report.measured = {{10, 20}, {65536, 64512}};
  report.interfaces["fe0"] = {5, 6};
  report.other_hosts["n1"]["fe0"] = {6, 5};
  report.port_state["n0"]["rxe0/1"] = {{"completer_retry_err", 4}};
  report.rdma = {attachment()};
  std::vector<json> lines = write(report, plan.probes[2]);
  for (const json& line : lines) {
    const std::set<std::string> keys = keys_of(line);
    EXPECT_TRUE(std::ranges::includes(keys, needed[line["type"]])) << line;
    EXPECT_TRUE(std::ranges::includes(known[line["type"]], keys)) << line;
  }
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[2]["bytes"], json({65536, 64512}));
  EXPECT_EQ(lines[3]["interfaces"]["fe0"]["sent"], 5);
  EXPECT_EQ(lines[3]["other_hosts"]["n1"]["fe0"]["sent"], 6);
  EXPECT_EQ(lines[3]["port_state"], json::parse(R"({"n0": {"rxe0/1": {"completer_retry_err": 4}}})"));
  EXPECT_EQ(lines[3]["rdma"][0]["transport"], "roce_v2");
  EXPECT_EQ(lines[3]["rdma"][0]["path_mtu"], 1024);
  EXPECT_EQ(lines[4]["cells"], 1);

  report.failure = CellFailure{FailureCode::permission, "no"};
  report.measured = {};
  report.port_state.clear();
  report.rdma.clear();
  lines = write(report, plan.probes[3]);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(keys_of(lines[1]), known["cell_failed"]);
  EXPECT_EQ(lines[2]["failed"], 1);
}

TEST_F(RecordWriting, StagesAreWrittenAsTheFixtureHasThemInLinesOfBoundedLength) {
  std::set<std::string> known;
  for (const json& line : read_lines(std::string(FIXTURES) + "/record-stages.jsonl")) {
    if (line["type"] == "stages") known = keys_of(line);
  }
  CellReport report;
  report.outcome.stop = StopReason::count;
  StageReport stages{.rank = 1,
                     .leads = false,
                     .refused = {{"resumed", "perf_event_open: no"}},
                     .busiest = ProcessorUse{.process = "other", .share = 0.25, .is_realtime = true},
                     .messages = {}};
  for (std::int64_t i = 0; i < 1500; ++i) {
    stages.messages.push_back({.number = i, .before = 1'000'000 + i, .arrived = 999'000 + i, .received = 999'500 + i});
  }
  CellParts parts;
  parts.stages = {stages};
  const CellParts sent = CellParts::unpack(parts.pack());
  std::vector<json> found;
  for (const json& line : write(report, plan.probes[0], sent)) {
    if (line["type"] == "stages") found.push_back(line);
  }
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(keys_of(found[0]), known);
  EXPECT_EQ(found[0]["number"].size() + found[1]["number"].size(), 1500U);
  EXPECT_EQ(found[0]["base_unix_ns"], 1'000'000);
  EXPECT_EQ(found[0]["before_ns"][1], 1);
  EXPECT_EQ(found[0]["arrived_ns"][0], -1'000);
  EXPECT_TRUE(found[0]["departed_ns"][0].is_null());
  EXPECT_EQ(found[1]["refused"]["resumed"], "perf_event_open: no");
  EXPECT_EQ(found[1]["busiest"], json({{"process", "other"}, {"share", 0.25}, {"is_realtime", true}}));
}

TEST_F(RecordWriting, TimesOfALibraryOfMessagesAreWrittenWhereThereAreAny) {
  CellReport report;
  report.outcome.stop = StopReason::count;
  CellParts parts;
  StageReport stages;
  stages.messages = {{.before = 1'000'000, .called = 1'000'500}, {.before = 2'000'000, .drained = 2'000'700}};
  parts.stages = {stages};
  std::vector<json> found;
  for (const json& line : write(report, plan.probes[0], CellParts::unpack(parts.pack()))) {
    if (line["type"] == "stages") found.push_back(line);
  }
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].contains("asked_ns"));
  EXPECT_EQ(found[0]["called_ns"], json({500, nullptr}));
  EXPECT_EQ(found[0]["drained_ns"], json({nullptr, 1'000'700}));
}

TEST_F(RecordWriting, CountersAreWrittenAsTheFixtureHasThem) {
  std::map<std::string, std::set<std::string>> known;
  for (const json& line : read_lines(std::string(FIXTURES) + "/record-counters.jsonl")) {
    if (line["type"] != "counters") continue;
    known["line"] = keys_of(line);
    for (const auto& [name, count] : line["counts"].items()) {
      EXPECT_TRUE(value_of<Counter>(name)) << name;
      EXPECT_TRUE(count.is_number_unsigned()) << name;
    }
  }
  CellReport report;
  report.outcome.stop = StopReason::count;
  CellParts parts;
  parts.counters = {{.rank = 1, .scope = CounterScope::machine, .counts = {{Counter::interrupts, 12}}}};
  const std::vector<json> lines = write(report, plan.probes[0], CellParts::unpack(parts.pack()));
  ASSERT_EQ(lines[2]["type"], "counters");
  EXPECT_EQ(keys_of(lines[2]), known["line"]);
  EXPECT_EQ(lines[2]["rank"], 1);
  EXPECT_EQ(lines[2]["scope"], "machine");
  EXPECT_EQ(lines[2]["counts"], json({{"interrupts", 12}}));
}

TEST_F(RecordWriting, ACellThatFailsMidwayKeepsItsSamples) {
  CellReport report;
  report.failure = CellFailure{FailureCode::timeout, "the peer fell silent"};
  report.warmup.time_ns = {1, 2, 3};
  report.port_state["n0"]["rxe0/1"] = {{"retry_exceeded_err", 1}};
  const std::vector<json> lines = write(report, plan.probes[0]);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[1]["type"], "cell");
  EXPECT_EQ(lines[2]["time_ns"], json({1, 2, 3}));
  EXPECT_EQ(lines[3]["code"], "timeout");
  EXPECT_EQ(lines[3]["port_state"]["n0"]["rxe0/1"]["retry_exceeded_err"], 1);
}

TEST_F(RecordWriting, LongBatchesAreSplitAndCountedOn) {
  CellReport report;
  report.outcome.stop = StopReason::count;
  for (std::uint64_t i = 0; i < 20'000; ++i) report.measured.time_ns.push_back(i);
  std::size_t next = 0;
  for (const json& line : write(report, plan.probes[0])) {
    if (line["type"] != "samples") continue;
    EXPECT_EQ(line["first_index"], next);
    EXPECT_EQ(line["time_ns"][0], next);
    next += line["time_ns"].size();
  }
  EXPECT_EQ(next, 20'000U);
}

TEST_F(RecordWriting, AFolderThatIsNotThereIsSaidSo) {
  EXPECT_THROW(RecordWriter("/no/such/folder/record.jsonl"), OutputError);
}

TEST_F(RecordWriting, AFullDiskIsSaidSo) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  RecordWriter writer("/dev/full");
  EXPECT_THROW(writer.write_footer(), OutputError);
}

TEST(CellReports, SurviveTheControlPlane) {
  CellReport report;
  report.failure = CellFailure{FailureCode::unreachable, "gone"};
  report.outcome = {.stop = StopReason::time, .seconds = 1.5, .operations_per_sample = 8, .bytes_per_sample = 9};
  report.counters = {.sent = 1, .lost = 2, .reordered = 3, .duplicated = 4, .corrupted = 5, .verified = 6};
  report.measured = {{7, 8}, {9, 10}};
  report.interfaces["lo"] = {11, 12};
  report.port_state["n0"]["rxe0/1"] = {{"completer_retry_err", 4}};
  report.rdma = {attachment()};
  report.span = {1'793'400'000'400'000'000, 1'793'400'000'404'000'000};
  const CellReport same = CellReport::unpack(report.pack());
  EXPECT_EQ(same.failure->reason, "gone");
  EXPECT_EQ(same.failure->code, FailureCode::unreachable);
  EXPECT_EQ(same.outcome.stop, StopReason::time);
  EXPECT_EQ(same.outcome.operations_per_sample, 8U);
  EXPECT_EQ(same.counters.verified, 6U);
  EXPECT_EQ(same.measured.bytes, report.measured.bytes);
  EXPECT_EQ(same.interfaces.at("lo").received, 12U);
  EXPECT_EQ(same.port_state, report.port_state);
  EXPECT_EQ(same.rdma, report.rdma);
  EXPECT_EQ(same.span->begin_unix_ns, 1'793'400'000'400'000'000);
  EXPECT_EQ(same.span->end_unix_ns, 1'793'400'000'404'000'000);
}

TEST(CellReports, RanksThatAreAttachedAlikeAreOneEntryAndOthersStandApart) {
  std::vector<RdmaAttachment> all = {attachment()};
  RdmaAttachment other = attachment();
  other.ranks = {1};
  add_attachment(all, other);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].ranks, (std::vector<int>{0, 1}));
  other.ranks = {2};
  other.path_mtu = 512;
  add_attachment(all, other);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].ranks, std::vector<int>{2});
}

TEST_F(RecordWriting, ACellTellsWhenItWasMeasuredByItsFirstMember) {
  CellReport first;
  first.outcome.stop = StopReason::time;
  first.measured.time_ns = {5};
  first.span = {1'000, 2'000};
  const CellReport other;
  const CellReport merged = merge({CellReport::unpack(other.pack()), first}, Family::pair);
  const json end = write(merged, plan.probes[0])[3];
  EXPECT_EQ(end["begin_unix_ns"], 1'000);
  EXPECT_EQ(end["end_unix_ns"], 2'000);
}

TEST(CellReports, MergeTakesSamplesFromWhoTookThemAndAddsCounters) {
  CellReport sender;
  sender.interfaces["fe0"] = {1, 2};
  CellReport receiver;
  receiver.outcome = {.stop = StopReason::width, .seconds = 2};
  receiver.measured.time_ns = {5};
  receiver.counters.lost = 3;
  const CellReport merged = merge({sender, receiver}, Family::pair);
  EXPECT_EQ(merged.outcome.stop, StopReason::width);
  EXPECT_EQ(merged.measured.time_ns, receiver.measured.time_ns);
  EXPECT_EQ(merged.counters.lost, 3U);
  EXPECT_EQ(merged.interfaces.size(), 1U);
}

TEST_F(RecordWriting, WritesThePartsOfRanksBehindEachOther) {
  CellReport report;
  report.outcome = {.stop = StopReason::time, .seconds = 0.1, .bytes_per_sample = 128};
  report.measured.time_ns = {10, 20};
  report.findings.channels.push_back({});
  report.findings.channels.back().time_ns = {10, 20};
  PlanProbe probe = plan.probes[0];
  probe.pattern = Pattern::pairs;
  const CellParts parts = take_parts(report, Family::matrix);
  EXPECT_TRUE(report.has_parts);
  EXPECT_TRUE(report.measured.time_ns.empty());
  const CellParts sent = CellParts::unpack(parts.pack());
  EXPECT_EQ(sent.channels.size(), 1U);
  const std::vector<json> lines = write(report, probe, sent);
  ASSERT_EQ(lines.size(), 6U);  // header, cell, samples, channel, cell_end, footer
  EXPECT_EQ(lines[2]["time_ns"], json({10, 20}));
  EXPECT_EQ(lines[3]["type"], "channel");
  EXPECT_EQ(lines[4]["measured"], 2);
}

}  // namespace
}  // namespace fabricbench
