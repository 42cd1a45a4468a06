#include "switch/config.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/failure.hpp"

namespace fabricbench::emulated_switch {
namespace {

using nlohmann::json;

json valid() {
  return {{"name", "fe"},
          {"ports",
           {{{"interface", "p0"}, {"mac", "02:00:00:00:00:01"}},
            {{"interface", "p1"}, {"mac", "02:00:00:00:00:02"}, {"delay_ns", 7}, {"line_rate_bit_s", 1e9}}}},
          {"line_rate_bit_s", 155.52e6},
          {"delay_ns", 5000},
          {"switching", "cut-through"},
          {"mtu", 1500},
          {"cell", {{"payload_bytes", 48}, {"cell_bytes", 53}}},
          {"cpu", nullptr},
          {"status", "/tmp/status"}};
}

/// The message that a configuration is refused with.
std::string refusal_of(const json& config) {
  try {
    parse_config(config.dump());
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

json with(const std::string& pointer, const json& value) {
  json config = valid();
  config[json::json_pointer(pointer)] = value;
  return config;
}

TEST(Config, ReadsWhatIsThereAndDefaultsTheRest) {
  const Config config = parse_config(valid().dump());
  EXPECT_EQ(config.timing.ports[0].line_rate_bit_s, 155'520'000);
  EXPECT_EQ(config.timing.ports[0].delay_up_ns, 5'000);
  EXPECT_EQ(config.timing.ports[1].line_rate_bit_s, 1'000'000'000);
  EXPECT_EQ(config.timing.ports[1].delay_up_ns, 7);
  EXPECT_EQ(config.timing.ports[1].delay_down_ns, 7);
  EXPECT_EQ(config.timing.switching, Switching::cut_through);
  EXPECT_EQ(config.timing.wire.cell->cell_bytes, 53);
  EXPECT_EQ(config.timing.wire.overhead_bytes, 24);
  EXPECT_EQ(config.timing.switch_latency_ns, 0);
  EXPECT_FALSE(config.cpu.has_value());
  EXPECT_EQ(config.ports[1].mac, 0x020000000002U);
}

TEST(Config, NamesTheKeyThatIsWrong) {
  EXPECT_NE(refusal_of(with("/ports/1/mac", "nonsense")).find("ports[1].mac"), std::string::npos);
  EXPECT_NE(refusal_of(with("/ports/1/mac", "02:00:00:00:00:01")).find("ports[1].mac"), std::string::npos);
  EXPECT_NE(refusal_of(with("/ports/1/mac", "03:00:00:00:00:01")).find("group address"), std::string::npos);
  EXPECT_NE(refusal_of(with("/ports/0/interface", "a-name-that-is-far-too-long")).find("ports[0].interface"),
            std::string::npos);
  EXPECT_NE(refusal_of(with("/ports/1/interface", "p0")).find("ports[1].interface"), std::string::npos);
  EXPECT_NE(refusal_of(with("/switching", "magic")).find("switching"), std::string::npos);
  EXPECT_NE(refusal_of(with("/line_rate_bit_s", "1G")).find("line_rate_bit_s"), std::string::npos);
  EXPECT_NE(refusal_of(with("/line_rate_bit_s", 0)).find("line_rate_bit_s"), std::string::npos);
  EXPECT_NE(refusal_of(with("/delay_ns", -1)).find("delay_ns"), std::string::npos);
  EXPECT_NE(refusal_of(with("/cell/payload_bytes", 0)).find("cell.payload_bytes"), std::string::npos);
  EXPECT_NE(refusal_of(with("/ports", json::array())).find("ports"), std::string::npos);
  EXPECT_NE(refusal_of(with("/cpu", "zero")).find("cpu"), std::string::npos);
}

TEST(Config, ReadsACableBetweenTwoPortsAndNoMore) {
  EXPECT_EQ(parse_config(with("/switching", "none").dump()).timing.switching, Switching::none);
  json config = with("/switching", "none");
  config["ports"].push_back({{"interface", "p2"}, {"mac", "02:00:00:00:00:03"}});
  EXPECT_EQ(refusal_of(config), "switching: is \"none\", a cable between two ports, and there are 3");
}

json routed() {
  json config = valid();
  config["segments"] = {{{"line_rate_bit_s", 6.4e9}, {"latency_ns", 100}},
                        {{"line_rate_bit_s", 1e9}, {"latency_ns", 0}}};
  config["routes"] = json::parse("[[[], [0, 1]], [[1], []]]");
  return config;
}

TEST(Config, ReadsSegmentsAndTheRoutesOverThem) {
  const FabricTiming timing = parse_config(routed().dump()).timing;
  ASSERT_EQ(timing.segments.size(), 2U);
  EXPECT_EQ(timing.segments[0].line_rate_bit_s, 6'400'000'000);
  EXPECT_EQ(timing.segments[0].latency_ns, 100);
  EXPECT_EQ(timing.routes[0][1], (Route{0, 1}));
  EXPECT_EQ(timing.routes[1][0], (Route{1}));
  EXPECT_TRUE(parse_config(valid().dump()).timing.routes.empty());
}

TEST(Config, ARouteOverASegmentThatIsNotThereIsRefused) {
  json config = routed();
  config["routes"][0][1][1] = 2;
  EXPECT_NE(refusal_of(config).find("routes[0]"), std::string::npos);
  config["routes"][0].erase(1);
  EXPECT_EQ(refusal_of(config), "routes[0]: must be a list with a route to each port");
  config["routes"] = json::array();
  EXPECT_EQ(refusal_of(config), "routes: must be a list with an entry for each port");
}

TEST(Config, RefusesUnknownKeysAtEachLevel) {
  EXPECT_TRUE(refusal_of(with("/line_rate", 1)).starts_with("line_rate: is not a known key"));
  EXPECT_TRUE(refusal_of(with("/ports/0/delay", 1)).starts_with("ports[0].delay: is not a known key"));
  EXPECT_TRUE(refusal_of(with("/cell/bytes", 1)).starts_with("cell.bytes: is not a known key"));
}

TEST(Config, SaysWhichKeyIsMissing) {
  for (const char* key : {"name", "line_rate_bit_s", "delay_ns", "switching", "mtu", "status"}) {
    json config = valid();
    config.erase(key);
    EXPECT_EQ(refusal_of(config), std::string(key) + ": is missing");
  }
}

TEST(Config, AHoldOfLastSegmentsIsReadWhole) {
  EXPECT_FALSE(parse_config(valid().dump()).hold);
  const json hold = {{"message_bytes", 31'744}, {"within_bytes", 1500}, {"hold_ns", 200'000}};
  const Config config = parse_config(with("/hold", hold).dump());
  ASSERT_TRUE(config.hold);
  EXPECT_EQ(config.hold->message_bytes, 31'744);
  EXPECT_EQ(config.hold->within_bytes, 1500);
  EXPECT_EQ(config.hold->hold_ns, 200'000);
  EXPECT_EQ(refusal_of(with("/hold", {{"message_bytes", 1}, {"within_bytes", 1}})), "hold.hold_ns: is missing");
}

TEST(Config, TextThatIsNotJsonIsRefused) {
  EXPECT_THROW(parse_config("{"), InputError);
  EXPECT_THROW(parse_config("[]"), InputError);
}

TEST(Config, AFileThatIsMissingIsNamed) {
  try {
    read_config("/nonexistent/switch.json");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/switch.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace fabricbench::emulated_switch
