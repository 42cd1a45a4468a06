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
