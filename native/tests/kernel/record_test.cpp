#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "kernel/frame/outcome.hpp"
#include "tests/json_lines.hpp"

namespace fabricbench::kernel {
namespace {

using nlohmann::json;

/// A line of the fixture by its type; of two runs the first.
std::map<std::string, json> fixture() {
  std::map<std::string, json> lines;
  for (const json& line : read_lines(std::string(FIXTURES) + "/kernel_record.jsonl")) lines.emplace(line["type"], line);
  return lines;
}

std::size_t index_of(std::string_view call) {
  return static_cast<std::size_t>(std::ranges::find(counted_calls, call) - counted_calls.begin());
}

class ByParameters final : public Problem {
 public:
  explicit ByParameters(std::vector<Parameter> all) : parameters_(std::move(all)) {}
  std::vector<Parameter> parameters() const override { return parameters_; }
  Result run(MPI_Comm) const override { return {}; }

 private:
  std::vector<Parameter> parameters_;
};

class KernelRecords : public testing::Test {
 protected:
  KernelRecords() {
    result.seconds = 0.5;
    result.operations = 2e6;
    result.size = "1400";
    result.iterations = 15;
    result.checks = {{"zeta", 8.5, 8.5, 1e-10}};
    result.fingerprint = 0xab;
    profile.ranks = {{0.5, 0.125, 100}, {0.4, 0.5, 200}};
    profile.calls[index_of("MPI_Wait")] = {7, 2'000'000'000, 0};
    profile.message_sizes[0] = 1;
    profile.message_sizes[4] = 2;
    path = testing::TempDir() + "kernel-record-" + std::to_string(getpid()) + ".jsonl";
  }
  ~KernelRecords() override { std::filesystem::remove(path); }

  std::vector<json> write(const std::vector<Parameter>& parameters = {{"class", "S"}}) const {
    Record record(path);
    const ByParameters problem(parameters);
    const Subject subject{"fabricbench-npb", "cg", problem, {"x86-64-v3"}};
    record.write_header(subject, {json{{"rank", 0}, {"host", "n0"}, {"pid", 1}, {"cpus", {0}}}}, "An MPI");
    record.write_run(result, profile);
    record.write_run(result, profile);
    record.write_footer();
    return read_lines(path);
  }

  Result result;
  Profile profile;
  std::string path;
};

TEST_F(KernelRecords, HaveTheLinesAndTheKeysOfTheFixture) {
  const std::vector<json> lines = write();
  ASSERT_EQ(lines.size(), 4U);
  std::map<std::string, json> known = fixture();
  for (const json& line : lines) EXPECT_EQ(keys_of(line), keys_of(known.at(line["type"]))) << line;
  const json& run = known["kernel_run"];
  json of_profile = run["profile"];
  of_profile.erase("other_hosts");  // written where ranks are on several
  EXPECT_EQ(keys_of(lines[1]["profile"]), keys_of(of_profile));
  EXPECT_EQ(keys_of(lines[1]["checks"][0]), keys_of(run["checks"][0]));
  EXPECT_EQ(keys_of(lines[1]["profile"]["calls"][0]), keys_of(run["profile"]["calls"][0]));
  EXPECT_EQ(keys_of(lines[1]["profile"]["message_sizes"][0]), keys_of(run["profile"]["message_sizes"][0]));
}

TEST_F(KernelRecords, TellWhoRanWhatAndHowOften) {
  const std::vector<json> lines = write();
  EXPECT_EQ(lines[0]["program"], "fabricbench-npb");
  EXPECT_EQ(lines[0]["class"], "S");
  EXPECT_EQ(lines[0]["problem"], json::parse(R"({"class":"S"})"));
  EXPECT_EQ(lines[0]["processor_levels"], json::parse(R"(["x86-64-v3"])"));
  EXPECT_EQ(lines[0]["rank_count"], 1);
  EXPECT_EQ(lines[1]["repetition"], 0);
  EXPECT_EQ(lines[2]["repetition"], 1);
  EXPECT_EQ(lines[3]["runs"], 2);
  EXPECT_EQ(lines[3]["verified"], 2);
}

TEST_F(KernelRecords, TellAProblemThatHasNoClassByItsParameters) {
  const json header = write({{"n", 1000}, {"grid", "2 x 4"}, {"threshold", 16.5}})[0];
  EXPECT_FALSE(header.contains("class"));
  EXPECT_EQ(header["problem"], json::parse(R"({"n":1000,"grid":"2 x 4","threshold":16.5})"));
}

TEST_F(KernelRecords, SplitTheTimeAndLeaveOutWhatDidNotHappen) {
  const json run = write()[1];
  EXPECT_EQ(run["mops_total"], 4.0);
  EXPECT_EQ(run["mops_per_process"], 2.0);
  EXPECT_EQ(run["fingerprint"], "00000000000000ab");
  const json& split = run["profile"];
  EXPECT_EQ(split["compute_seconds"],
            json({0.375, 0.0}));  // more time in MPI than in all is rounding, not less than none
  EXPECT_EQ(split["bytes_sent"], json({100, 200}));
  EXPECT_EQ(split["calls"], json::parse(R"([{"call":"MPI_Wait","number":7,"seconds":2.0,"bytes":0}])"));
  EXPECT_EQ(split["message_sizes"], json::parse(R"([{"from_bytes":0,"to_bytes":0,"number":1},
                                                    {"from_bytes":8,"to_bytes":15,"number":2}])"));
}

TEST_F(KernelRecords, OfAWrongResultSaySo) {
  result.checks[0].found = std::numeric_limits<double>::quiet_NaN();
  const std::vector<json> lines = write();
  EXPECT_EQ(lines[1]["verified"], false);
  EXPECT_EQ(lines[1]["checks"][0]["holds"], false);
  EXPECT_TRUE(lines[1]["checks"][0]["found"].is_null());
  EXPECT_EQ(lines[3]["verified"], 0);
}

TEST(MessageSizeBins, HoldWhatTheySay) {
  EXPECT_EQ(smallest_in(1), 1U);
  EXPECT_EQ(largest_in(1), 1U);
  EXPECT_EQ(smallest_in(11), 1024U);
  EXPECT_EQ(largest_in(11), 2047U);
  EXPECT_EQ(largest_in(size_bins - 1), std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace fabricbench::kernel
