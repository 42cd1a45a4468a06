// Every pattern over doors that are added in one line: whole launches, from the plan to the record, over paths of which
// one loses, doubles and overtakes messages by a rule (examples/extending/lossy_door.hpp).
#include "examples/extending/lossy_door.hpp"

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>

#include "extending/test_doors.hpp"
#include "json_lines.hpp"
#include "pattern/channels.hpp"
#include "probe/launch.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

constexpr int message_bytes = 256;
constexpr std::size_t matchings = 2;

int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

bool is_first_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == 0;
}

/// All patterns that run over paths into a layer.
std::vector<Pattern> patterns_over_paths(Layer layer) {
  std::vector<Pattern> patterns;
  for (std::size_t i = 0; i < names_of<Pattern>.size(); ++i) {
    const auto pattern = static_cast<Pattern>(i);
    const PatternFacts& facts = facts_of(pattern);
    const bool has_paths = facts.family != Family::operation && facts.family != Family::workload;
    if (has_paths && facts.layers.has(layer)) patterns.push_back(pattern);
  }
  return patterns;
}

std::vector<int> ranks_of(Pattern pattern) {
  const bool is_pair = facts_of(pattern).most_ranks == 2;
  std::vector<int> ranks;
  for (int rank = 0; rank < (is_pair ? 2 : world_size()); ++rank) ranks.push_back(rank);
  return ranks;
}

json probe_of(Pattern pattern, std::string_view layer, std::string_view door, std::string_view receive) {
  json probe{{"id", 0},
             {"layer", layer},
             {"pattern", name_of(pattern)},
             {"message_bytes", message_bytes},
             {"receive", receive},
             {"ranks", ranks_of(pattern)},
             {"messages_per_sample", 16},
             {"warmup_samples", 2},
             {"verify_messages", 2},
             {"reply_timeout_seconds", 0.03},
             {"stopping", {{"minimum_samples", 48}, {"maximum_samples", 48}, {"maximum_seconds", 20}}},
             {"parameters", {{"door", door}}}};
  if (pattern == Pattern::bisection) probe["parameters"]["matchings"] = matchings;
  // The rule has a period of 16 messages: bursts of 8 could all meet it alike.
  if (pattern == Pattern::burst) probe["parameters"]["messages"] = 5;
  if (facts_of(pattern).family == Family::flood) probe["stopping"] = {{"maximum_seconds", 0.1}};
  return probe;
}

/// Measure cells, one for each probe; on the first rank the record's lines. Collective.
std::vector<json> measure(std::vector<json> probes) {
  for (std::size_t i = 0; i < probes.size(); ++i) probes[i]["id"] = i;
  const std::string path = testing::TempDir() + "lossy-door-" + std::to_string(getpid());
  const json plan{{"schema", "fabricbench/plan/1"},
                  {"launch_id", "b00-example"},
                  {"token", 0xfab1},
                  {"fabric", {{"name", "loopback"}, {"interface", "lo"}, {"subnet", "127.0.0.0/8"}, {"mtu", 1500}}},
                  {"output", path + ".records.jsonl"},
                  {"probes", probes},
                  {"patience_seconds", 50}};
  if (is_first_rank()) std::ofstream(path + ".plan.json") << plan.dump();
  EXPECT_EQ(launch(path + ".plan.json", {}), ExitCode::done);
  std::vector<json> lines;
  if (is_first_rank()) {
    lines = read_lines(path + ".records.jsonl");
    unlink((path + ".plan.json").c_str());
    unlink((path + ".records.jsonl").c_str());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return lines;
}

/// The cell_end of a cell; where it failed, its reason is a failure of the test.
json end_of(const std::vector<json>& lines, std::size_t cell) {
  for (const json& line : lines) {
    if (line["type"] == "cell_end" && line["cell"] == cell) return line;
    if (line["type"] == "cell_failed" && line["cell"] == cell) ADD_FAILURE() << line["reason"];
  }
  return nullptr;
}

/// What the first member's device counted in a cell, in messages.
double counted(const json& end, const std::string& name, const char* direction) {
  return end["interfaces"][name][direction].get<double>() / message_bytes;
}

/// The parameters of a pattern of many ranks, as probe_of() asks for them.
GroupParameters parameters_of(Pattern pattern) {
  PlanProbe probe;
  probe.pattern = pattern;
  if (pattern == Pattern::bisection) probe.parameters["matchings"] = std::int64_t{matchings};
  return group_parameters(probe);
}

/// How many paths the first member used in a cell: on each, what the rule does may be one off in any stretch.
double paths_of(Pattern pattern) {
  const std::size_t members = ranks_of(pattern).size();
  const Family family = facts_of(pattern).family;
  if (family == Family::pair) return 1;
  if (family == Family::matrix) return 2 * static_cast<double>(members - 1);
  const GroupParameters parameters = parameters_of(pattern);
  double paths = 0;
  for (std::size_t round = 0; round < rounds_of(pattern, members, parameters); ++round) {
    paths += static_cast<double>(links_of(pattern, members, 0, parameters, round).size());
  }
  return paths;
}

class Doors : public testing::TestWithParam<const char*> {
 protected:
  static constexpr double share = 1.0 / fate_period;

  /// What the sender's end did is the rule.
  static void expect_rule_kept(Pattern pattern, const json& end) {
    const double sent = counted(end, "lossy", "sent");
    for (const char* fate : {"lossy lost", "lossy doubled", "lossy overtaken"}) {
      EXPECT_NEAR(counted(end, fate, "sent"), sent * share, paths_of(pattern)) << fate << " of " << sent;
    }
  }

  /// What the receivers' ends found is the rule, too. A stretch may begin or end between a message and what it
  /// overtook.
  static void expect_rule_found(Pattern pattern, const json& end) {
    const Family family = facts_of(pattern).family;
    const double sent = end["sent"];
    const double lost = end["lost"];
    EXPECT_GT(sent, 0);
    if (pattern == Pattern::stream || family == Family::flood) {
      const bool is_pair = pattern == Pattern::stream;
      const auto channels = static_cast<double>(
          is_pair ? 1 : matchings * channels_of(pattern, ranks_of(pattern).size(), parameters_of(pattern)));
      EXPECT_NEAR(lost, sent * share, 2 * channels);
      EXPECT_NEAR(end["reordered"].get<double>(), sent * share, 2 * channels);
      EXPECT_NEAR(end["duplicated"].get<double>(), sent * share, 2 * channels);
    } else if (family == Family::lockstep) {
      // What is overtaken came too late for its turn.
      EXPECT_GE(lost, 2 * sent * share - 2 * paths_of(pattern) * static_cast<double>(ranks_of(pattern).size()));
      EXPECT_LT(lost, sent / 2);
    } else if (pattern == Pattern::pingpong || pattern == Pattern::paced || pattern == Pattern::oneway) {
      EXPECT_EQ(end["measured"].get<double>(), sent - lost);
      EXPECT_GE(lost, 2 * counted(end, "lossy", "sent") * share - 4);
      EXPECT_GT(end["duplicated"].get<double>(), 0);
    } else if (pattern == Pattern::burst) {
      EXPECT_GT(lost, 0);
      EXPECT_LT(lost, sent);
    }
  }

  static void expect_nothing_lost(const json& end) {
    for (const char* count : {"lost", "reordered", "duplicated", "corrupted"}) EXPECT_EQ(end[count], 0) << count;
    EXPECT_GT(end["sent"], 0);
    EXPECT_GT(end["measured"], 0);
  }

  /// The leader has its receive posted before each message that it sends, and receives nothing where none was.
  static void expect_preposted(Pattern pattern, const json& end) {
    const bool is_round_trip = pattern == Pattern::pingpong || pattern == Pattern::paced || pattern == Pattern::oneway;
    const double received = counted(end, "faithful preposted", "received");
    EXPECT_EQ(received, is_round_trip || pattern == Pattern::burst ? counted(end, "faithful", "received") : 0);
    if (!is_round_trip) return;
    EXPECT_GE(received, end["measured"].get<double>() + end["warmup"].get<double>());
    EXPECT_EQ(counted(end, "faithful preposted", "sent"), counted(end, "faithful", "sent"));
  }
};

TEST_P(Doors, EveryPatternCountsWhatALossyPathDid) {
  const std::vector<Pattern> patterns = patterns_over_paths(Layer::udp);
  std::vector<json> probes;
  for (const Pattern pattern : patterns) probes.push_back(probe_of(pattern, "udp", "lossy", GetParam()));
  const std::vector<json> lines = measure(probes);
  for (std::size_t i = 0; i < patterns.size() && is_first_rank(); ++i) {
    SCOPED_TRACE(name_of(patterns[i]));
    const json end = end_of(lines, i);
    if (end.is_null()) continue;
    EXPECT_EQ(end["corrupted"], 0);
    EXPECT_GT(end["measured"], 0);
    expect_rule_kept(patterns[i], end);
    expect_rule_found(patterns[i], end);
  }
}

TEST_P(Doors, EveryPatternRunsOverAPathThatKeepsTheOrderAndPostsReceivesAhead) {
  const std::vector<Pattern> patterns = patterns_over_paths(Layer::tcp);
  std::vector<json> probes;
  for (const Pattern pattern : patterns) probes.push_back(probe_of(pattern, "tcp", "faithful", GetParam()));
  const std::vector<json> lines = measure(probes);
  for (std::size_t i = 0; i < patterns.size() && is_first_rank(); ++i) {
    SCOPED_TRACE(name_of(patterns[i]));
    const json end = end_of(lines, i);
    if (end.is_null()) continue;
    expect_nothing_lost(end);
    if (facts_of(patterns[i]).family == Family::pair) expect_preposted(patterns[i], end);
  }
}

INSTANTIATE_TEST_SUITE_P(OfReceiving, Doors, testing::Values("blocking", "polling"),
                         [](const auto& way) { return std::string(way.param); });

TEST_P(Doors, EveryMessageLiesInMemoryThatTheDeviceHasLent) {
  std::vector<json> probes;
  for (const Layer layer : {Layer::udp, Layer::tcp}) {
    for (const Pattern pattern : patterns_over_paths(layer)) {
      probes.push_back(probe_of(pattern, name_of(layer), "strict", GetParam()));
    }
  }
  const std::vector<json> lines = measure(probes);
  for (std::size_t i = 0; i < probes.size() && is_first_rank(); ++i) {
    SCOPED_TRACE(probes[i]["pattern"]);
    EXPECT_FALSE(end_of(lines, i).is_null());
  }
}

/// Measure each pattern over a strict path three times: twice with messages that one rank is lent no buffer for, as it
/// verifies and as it does not, and once with others. The first two fail with the cause, and nothing is left of them.
void expect_cause(Layer layer, int rank, const std::function<void()>& refuse, const std::string& cause) {
  constexpr int refused_bytes = message_bytes + 1;
  int own = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  if (own == rank) refusal = {.bytes = refused_bytes, .refuse = refuse};
  std::vector<json> probes;
  for (const Pattern pattern : patterns_over_paths(layer)) {
    if (facts_of(pattern).family == Family::matrix) continue;  // its pairs are pairs
    for (const int verified : {2, 0}) {
      probes.push_back(probe_of(pattern, name_of(layer), "strict", "blocking"));
      probes.back()["message_bytes"] = refused_bytes;
      probes.back()["verify_messages"] = verified;
    }
    probes.push_back(probe_of(pattern, name_of(layer), "strict", "blocking"));
  }
  const std::vector<json> lines = measure(probes);
  refusal = {};
  for (std::size_t i = 0; i < probes.size() && is_first_rank(); ++i) {
    SCOPED_TRACE(probes[i].dump());
    if (probes[i]["message_bytes"] == message_bytes) {
      EXPECT_FALSE(end_of(lines, i).is_null());
      continue;
    }
    const auto failed = std::ranges::find_if(
        lines, [&](const json& line) { return line["type"] == "cell_failed" && line["cell"] == i; });
    ASSERT_NE(failed, lines.end());
    const std::string reason = (*failed)["reason"];
    EXPECT_TRUE(reason.starts_with("rank " + std::to_string(rank) + " on ") && reason.ends_with(cause)) << reason;
  }
}

TEST(Memory, ARankThatItsDeviceRefusesABufferFailsItsCellWithTheCauseAndNoOther) {
  expect_cause(
      Layer::tcp, 0, [] { throw Failure(FailureCode::unsupported, "no more frames are free"); },
      "no more frames are free");
}

TEST(Memory, ARankWithoutMemoryFailsItsCellWithThatAndNoOther) {
  expect_cause(Layer::udp, 1, [] { throw std::bad_alloc(); }, "out of memory: use smaller messages or fewer samples");
}

TEST(Matrix, AReceiverThatStandsStillUntilItsSenderGivesUpLeavesNothingToTheWayBack) {
  int own = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  json probe = probe_of(Pattern::pairs_stream, "udp", "standing", "blocking");
  probe["ranks"] = {0, 1};
  probe["stopping"] = {{"minimum_samples", 5}, {"maximum_samples", 5}, {"maximum_seconds", 0.02}};
  // A sender ends by itself 10 s after twice the direction's time.
  if (own == 1) standstill = {.after = 20, .seconds = 10.5};
  const std::vector<json> lines = measure({probe, probe});
  if (own == 1) {
    EXPECT_EQ(standstill.seconds, 0) << "it stood still";
  }
  for (std::size_t i = 0; i < 2 && is_first_rank(); ++i) EXPECT_FALSE(end_of(lines, i).is_null());
}

TEST(DoorTable, ADoorThatIsNotThereIsRefusedWithThoseThatAre) {
  json without_door = probe_of(Pattern::pingpong, "udp", "rings", "blocking");
  json of_two_kinds = probe_of(Pattern::pingpong, "udp", "lossy", "library");
  const std::vector<json> lines = measure({without_door, of_two_kinds});
  if (!is_first_rank()) return;
  std::vector<std::string> reasons;
  for (const json& line : lines) {
    if (line["type"] != "cell_failed") continue;
    EXPECT_EQ(line["code"], "unsupported");
    reasons.push_back(line["reason"]);
  }
  ASSERT_EQ(reasons.size(), 2U);
  EXPECT_NE(
      reasons[0].find("door must be one of those into layer udp (socket, lossy, strict, standing), found \"rings\""),
      std::string::npos)
      << reasons[0];
  EXPECT_NE(reasons[1].find("receive must be one of blocking, polling"), std::string::npos) << reasons[1];
}

}  // namespace
}  // namespace fabricbench
