#include "farm/record.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/json_lines.hpp"

namespace fabricbench::farm {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class FarmRecords : public testing::Test {
 protected:
  FarmRecords() : folder(testing::TempDir() + "farm-record-" + std::to_string(getpid())) {
    fs::create_directories(folder);
    plan.name = "speech";
    plan.jobs = 2;
    plan.output_bytes = 1000;
    result.ended = ended::done;
    result.exit_code = 0;
    result.output = std::string(700, 'x');
    told.staged_s = 1.0;
    totals.left_out["n2"] = "No space left on device";
    totals.interfaces["eth1"] = {.sent = 5, .received = 7};
  }
  ~FarmRecords() override { fs::remove_all(folder); }

  std::vector<json> write() const {
    FarmRecord record(folder + "/farm.jsonl", plan);
    record.write_header({json{{"rank", 0}, {"host", "n0"}, {"pid", 1}, {"cpus", {0}}}}, {1}, "An MPI");
    record.write_attempt(told, result);
    record.write_lost({.job = 1, .attempt = 2}, "no node is left", 2.0);
    record.write_footer(totals);
    return read_lines(folder + "/farm.jsonl");
  }

  std::string folder;
  FarmPlan plan;
  FarmResult result;
  AttemptTold told;
  FarmTotals totals;
};

TEST_F(FarmRecords, HaveTheLinesAndTheKeysOfTheFixture) {
  const std::vector<json> lines = write();
  ASSERT_EQ(lines.size(), 4U);
  std::map<std::string, json> known;
  for (const json& line : read_lines(std::string(FIXTURES) + "/farm_record.jsonl")) known.emplace(line["type"], line);
  for (const json& line : lines) EXPECT_EQ(keys_of(line), keys_of(known.at(line["type"]))) << line;
  EXPECT_EQ(lines[2]["attempt"], 2);
  EXPECT_EQ(lines[3]["attempts"], 2);
  EXPECT_EQ(lines[3]["left_out"][0], json::parse(R"({"node":"n2","reason":"No space left on device"})"));
}

TEST_F(FarmRecords, KeepOutputsInAnArchiveThatTarReads) {
  write();
  const std::string command = "cd '" + folder + "' && tar xf outputs.tar";
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT: no text of others is in it
  EXPECT_EQ(fs::file_size(folder + "/job-0"), 700U);
  EXPECT_FALSE(fs::exists(folder + "/job-1"));
}

TEST_F(FarmRecords, BringNoOutputsBackUnasked) {
  plan.output_bytes = 0;
  write();
  EXPECT_FALSE(fs::exists(folder + "/outputs.tar"));
}

}  // namespace
}  // namespace fabricbench::farm
