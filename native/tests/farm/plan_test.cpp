#include "farm/plan.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/failure.hpp"

namespace fabricbench::farm {
namespace {

using nlohmann::json;

json fixture() {
  std::ifstream file(std::string(FIXTURES) + "/farm_plan.json");
  return json::parse(file);
}

std::string refusal(const json& plan) {
  try {
    parse_farm_plan(plan.dump());
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(FarmPlans, AreReadAsTheFixtureHasThem) {
  const FarmPlan plan = parse_farm_plan(fixture().dump());
  EXPECT_EQ(plan.name, "speech");
  EXPECT_EQ(plan.jobs, 4);
  EXPECT_EQ(plan.input_bytes, 1'000'000U);
  EXPECT_FALSE(plan.input_path.has_value());
  EXPECT_EQ(plan.command.size(), 4U);
  EXPECT_EQ(plan.job_seconds, 60.0);
  EXPECT_EQ(plan.output_bytes, 1024U);
  EXPECT_EQ(plan.scratch, "/tmp");
}

TEST(FarmPlans, ThatCannotBeFollowedSayWhere) {
  json plan = fixture();
  plan["jobs"] = 0;
  EXPECT_NE(refusal(plan).find("jobs"), std::string::npos) << refusal(plan);
  plan = fixture();
  plan["command"] = "recognise";
  EXPECT_NE(refusal(plan).find("command: needed a list of words"), std::string::npos) << refusal(plan);
  plan = fixture();
  plan["retrys"] = 1;
  EXPECT_NE(refusal(plan).find("retrys"), std::string::npos) << refusal(plan);
  plan = fixture();
  plan["schema"] = "fabricbench/farm-plan/2";
  EXPECT_NE(refusal(plan).find("another fabricbench-farm"), std::string::npos) << refusal(plan);
}

TEST(Commands, HaveTheirPlaceholdersFilledOnceAndNothingElse) {
  const Placeholders values{.job = 7, .attempt = 1, .input = "/in {job}", .output = "/out", .digest = "ab"};
  const std::vector<std::string> command{"run", "{job}.{attempt}", "{input}", "-o{output}", "{other} {", "{digest}"};
  const std::vector<std::string> expected{"run", "7.1", "/in {job}", "-o/out", "{other} {", "ab"};
  EXPECT_EQ(filled(command, values), expected);
  EXPECT_TRUE(names_output(command));
  EXPECT_FALSE(names_output({"run", "{input}"}));
}

}  // namespace
}  // namespace fabricbench::farm
