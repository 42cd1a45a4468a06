#include "core/plan.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace fabricbench {
namespace {

using nlohmann::json;

json fixture() {
  std::ifstream file(std::string(FIXTURES) + "/plan.json");
  return json::parse(file);
}

/// What a plan is refused with; empty if it is not.
std::string refusal(const json& plan) {
  try {
    check_ranks(parse_plan(plan.dump()), 2);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

testing::AssertionResult is_refused(const json& plan, const std::string& start) {
  const std::string found = refusal(plan);
  return found.starts_with(start) ? testing::AssertionSuccess() : testing::AssertionFailure() << "found: " << found;
}

TEST(Plan, TheFixtureIsReadAsItStands) {
  const Plan plan = parse_plan(fixture().dump());
  EXPECT_EQ(plan.launch_id, "b00-fast-ethernet");
  EXPECT_EQ(plan.token, 305419896U);
  EXPECT_EQ(plan.fabric.interface, "fe0");
  ASSERT_TRUE(plan.fabric.subnet);
  EXPECT_EQ(plan.fabric.subnet->network, 0x0a620100U);
  EXPECT_EQ(plan.fabric.subnet->mask, 0xffffff00U);
  ASSERT_EQ(plan.probes.size(), 4U);
  EXPECT_EQ(plan.probes[0].layer, Layer::tcp);
  EXPECT_EQ(plan.probes[0].verify_messages, 4U);
  EXPECT_EQ(plan.probes[0].stopping.maximum_samples, 1000U);
  EXPECT_EQ(plan.probes[1].ranks, std::vector<int>{0});
  EXPECT_EQ(plan.probes[1].parameters.at("kernel"), ParameterValue("triad"));
  EXPECT_EQ(plan.probes[0].stopping.minimum_seconds, 0.1);
  EXPECT_EQ(plan.probes[1].stopping.maximum_seconds, 0.2);
  EXPECT_EQ(plan.probes[2].messages_per_sample, 64U);
}

TEST(Plan, TheSecretHas128Bits) {
  json plan = fixture();
  plan["secret"] = "0123456789abcdeffedcba9876543210";
  EXPECT_EQ(parse_plan(plan.dump()).secret, (Secret{0x0123456789abcdefU, 0xfedcba9876543210U}));
}

TEST(Plan, HardwareCountersAreOpenedOnlyWhereItAsks) {
  json plan = fixture();
  EXPECT_FALSE(parse_plan(plan.dump()).hardware_counters);
  plan["hardware_counters"] = true;
  EXPECT_TRUE(parse_plan(plan.dump()).hardware_counters);
}

TEST(Plan, WhatIsLeftOutHasTheContractsDefaults) {
  const PlanProbe probe = parse_plan(fixture().dump()).probes[3];
  EXPECT_EQ(probe.receive, Receive::blocking);
  EXPECT_EQ(probe.ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(probe.messages_per_sample, 1U);
  EXPECT_EQ(probe.warmup_samples, 10U);
  EXPECT_EQ(probe.verify_messages, 0U);
  EXPECT_EQ(probe.reply_timeout_seconds, 0.25);
  EXPECT_EQ(probe.stopping.minimum_samples, 20U);
  EXPECT_EQ(probe.stopping.maximum_samples, 100'000U);
  EXPECT_EQ(probe.stopping.minimum_seconds, 0.0);  // as plans of earlier versions had it
  EXPECT_EQ(probe.stopping.confidence, 0.95);
}

TEST(Plan, WhatIsWrongIsNamedByItsPath) {
  json plan = fixture();
  plan["probes"][2]["mesage_bytes"] = 5;
  EXPECT_TRUE(is_refused(plan, "$.probes[2].mesage_bytes: is not a known key; known are congestor, id"));
  plan = fixture();
  plan["probes"][0]["layer"] = "carrier-pigeon";
  EXPECT_TRUE(is_refused(plan, "$.probes[0].layer: 'carrier-pigeon' is unknown; known are memory, frame"));
  plan = fixture();
  plan["probes"][0]["message_bytes"] = -1;
  EXPECT_TRUE(is_refused(plan, "$.probes[0].message_bytes: must be from 0"));
  plan = fixture();
  plan["probes"][0]["message_bytes"] = "64";
  EXPECT_TRUE(is_refused(plan, "$.probes[0].message_bytes: must be an integer, found \"64\""));
  plan = fixture();
  plan["probes"][0]["stopping"]["confidence"] = 1;
  EXPECT_TRUE(is_refused(plan, "$.probes[0].stopping.confidence: must be less than 1"));
  plan = fixture();
  plan["probes"][0]["ranks"] = {0, 5};
  EXPECT_TRUE(is_refused(plan, "$.probes[0].ranks[1]: rank 5 is not in this launch, which has 2"));
  plan = fixture();
  plan["probes"][0]["ranks"] = {0};
  EXPECT_TRUE(is_refused(plan, "$.probes[0].ranks: pingpong over tcp needs 2 ranks, found 1"));
  plan = fixture();
  plan["probes"][0]["ranks"] = {1, 1};
  EXPECT_TRUE(is_refused(plan, "$.probes[0].ranks[1]: names the same rank twice"));
  plan = fixture();
  plan["fabric"]["subnet"] = "10.98.1/33";
  EXPECT_TRUE(is_refused(plan, "$.fabric.subnet: must be an IPv4 network"));
  plan = fixture();
  plan["token"] = 4294967296;
  EXPECT_TRUE(is_refused(plan, "$.token: must be from 0 to 4294967295"));
  plan = fixture();
  plan["secret"] = "0123456789abcdef";
  EXPECT_TRUE(is_refused(plan, "$.secret: must be 32 hexadecimal digits"));
  plan = fixture();
  plan["probes"][1]["id"] = 0;
  EXPECT_TRUE(is_refused(plan, "$.probes[1].id: is used twice"));
  plan = fixture();
  plan["hardware_counters"] = 1;
  EXPECT_TRUE(is_refused(plan, "$.hardware_counters: must be true or false"));
  plan = fixture();
  plan.erase("output");
  EXPECT_TRUE(is_refused(plan, "$.output: is missing"));
  plan = fixture();
  plan["probes"] = json::array();
  EXPECT_TRUE(is_refused(plan, "$.probes: must be a list with at least one probe"));
  plan = fixture();
  plan["schema"] = "fabricbench/plan/9";
  EXPECT_TRUE(is_refused(plan, "$.schema: must be fabricbench/plan/1"));
  EXPECT_TRUE(is_refused(json::array(), "$: must be an object"));
}

TEST(Plan, NoTimeIsLongerThanAYear) {
  constexpr double year = 31'536'000;
  json plan = fixture();
  plan["patience_seconds"] = year;
  EXPECT_EQ(parse_plan(plan.dump()).patience_seconds, year);
  plan["patience_seconds"] = year + 1;
  EXPECT_TRUE(is_refused(plan, "$.patience_seconds: must be a year at most, 31536000 s, found 31536001"));
  plan = fixture();
  plan["probes"][0]["stopping"]["maximum_seconds"] = 1e11;  // too long for nanoseconds in 64 bits
  EXPECT_TRUE(is_refused(plan, "$.probes[0].stopping.maximum_seconds: must be a year at most"));
  plan = fixture();
  plan["probes"][0]["reply_timeout_seconds"] = 1e300;
  EXPECT_TRUE(is_refused(plan, "$.probes[0].reply_timeout_seconds: must be a year at most"));
}

TEST(Plan, AParameterThatIsTooLargeIsNoNegativeOne) {
  json plan = fixture();
  plan["probes"][0]["parameters"]["round_trips"] = 9'223'372'036'854'775'807;
  EXPECT_EQ(refusal(plan), "");
  plan["probes"][0]["parameters"]["round_trips"] = 9'223'372'036'854'775'808U;
  EXPECT_TRUE(is_refused(plan,
                         "$.probes[0].parameters.round_trips: must be at most 9223372036854775807, found "
                         "9223372036854775808"));
}

TEST(Plan, TextThatIsNotJsonIsRefused) { EXPECT_THROW(parse_plan("{\"probes\": ["), InputError); }

TEST(Plan, NullStandsForAnInterfaceThatIsNotGiven) {
  json plan = fixture();
  plan["fabric"]["interface"] = nullptr;
  plan["fabric"]["subnet"] = nullptr;
  EXPECT_FALSE(parse_plan(plan.dump()).fabric.interface);
}

TEST(Plan, MemoryNeedsOnlyItsFirstRank) {
  json plan = fixture();
  plan["probes"] = json::array({{{"id", 0}, {"layer", "memory"}, {"pattern", "pingpong"}, {"message_bytes", 8}}});
  EXPECT_NO_THROW(check_ranks(parse_plan(plan.dump()), 1));
}

TEST(Plan, TheCongestorOfAMemoryCellIsCheckedAsAnyOther) {
  json plan = fixture();
  plan["probes"] = json::array({{{"id", 0},
                                 {"layer", "memory"},
                                 {"pattern", "pingpong"},
                                 {"message_bytes", 8},
                                 {"ranks", {0}},
                                 {"congestor", {{"layer", "tcp"}, {"pattern", "ring"}, {"message_bytes", 8}}}}});
  plan["probes"][0]["congestor"]["ranks"] = {1, 7};
  EXPECT_TRUE(is_refused(plan, "$.probes[0].congestor.ranks[1]: rank 7 is not in this launch, which has 2"));
  plan["probes"][0]["congestor"]["ranks"] = {1};
  EXPECT_TRUE(is_refused(plan, "$.probes[0].congestor.ranks: ring over tcp needs at least 2 ranks, found 1"));
}

}  // namespace
}  // namespace fabricbench
