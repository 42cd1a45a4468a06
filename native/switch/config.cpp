#include "switch/config.hpp"

#include <net/if.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/failure.hpp"
#include "base/json_text.hpp"
#include "base/object_reader.hpp"

namespace fabricbench::emulated_switch {
namespace {

using nlohmann::json;

constexpr std::int64_t kDefaultPortBufferBytes = 512 * 1024;
constexpr std::int64_t kDefaultHostQueueBytes = 1024 * 1024;
constexpr std::int64_t kLargestMtu = 65'521;  // the largest IPv4 packet, less what an Ethernet header takes of 64 KiB
constexpr std::int64_t kLargestDelayNs = 10'000'000'000;
constexpr std::int64_t kLargestRateBitS = 1'000'000'000'000;
constexpr std::int64_t kLargestBytes = 1LL << 32;

std::string need_text(ObjectReader& reader, std::string_view key) {
  std::string text = reader.text(key);
  if (text.empty()) throw InputError(reader.path_of(key), "must not be empty");
  return text;
}

Mac parse_mac(const std::string& text, const std::string& path) {
  std::array<unsigned, 6> parts{};
  int used = 0;
  const int found = std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%n", &parts[0], &parts[1], &parts[2], &parts[3],
                                &parts[4], &parts[5], &used);
  if (found != 6 || static_cast<std::size_t>(used) != text.size()) {
    throw InputError(path, "must be a MAC address such as 02:00:00:00:00:01, found \"" + text + "\"");
  }
  if ((parts[0] & 1U) != 0) throw InputError(path, "is a group address, a port needs one host's: " + text);
  std::array<std::uint8_t, 6> bytes{};
  for (std::size_t i = 0; i < 6; ++i) bytes[i] = static_cast<std::uint8_t>(parts[i]);
  Mac mac = 0;
  std::memcpy(&mac, bytes.data(), bytes.size());
  return mac;
}

Switching parse_switching(ObjectReader& top) {
  const std::string text = top.text("switching");
  if (text == "store-and-forward") return Switching::store_and_forward;
  if (text == "cut-through") return Switching::cut_through;
  if (text == "none") return Switching::none;
  throw InputError("switching", "must be \"store-and-forward\", \"cut-through\" or \"none\", found \"" + text + "\"");
}

Wire parse_wire(ObjectReader& top) {
  Wire wire;
  wire.overhead_bytes = top.rounded("overhead_bytes", {-14, 1024}, wire.overhead_bytes);
  wire.minimum_bytes = top.rounded("minimum_bytes", {1, 1024}, wire.minimum_bytes);
  if (const json* cell = top.find_given("cell")) {
    ObjectReader section(*cell, top.path_of("cell"));
    wire.cell = CellTax{section.rounded("payload_bytes", {1, 65'536}), section.rounded("cell_bytes", {1, 65'536})};
    section.refuse_unknown();
  }
  return wire;
}

void parse_port(ObjectReader port, const PortTiming& of_fabric, Config& config) {
  PortConfig parsed{need_text(port, "interface"), parse_mac(need_text(port, "mac"), port.path_of("mac"))};
  if (parsed.interface.size() >= IFNAMSIZ) {
    throw InputError(port.path_of("interface"), "is too long for an interface: \"" + parsed.interface + "\"");
  }
  for (const PortConfig& other : config.ports) {
    if (other.interface == parsed.interface) throw InputError(port.path_of("interface"), "is named twice");
    if (other.mac == parsed.mac) throw InputError(port.path_of("mac"), "is behind two ports");
  }
  config.ports.push_back(parsed);
  const std::int64_t delay_ns = port.rounded("delay_ns", {0, kLargestDelayNs}, of_fabric.delay_up_ns);
  config.timing.ports.push_back({port.rounded("line_rate_bit_s", {1'000, kLargestRateBitS}, of_fabric.line_rate_bit_s),
                                 port.rounded("delay_up_ns", {0, kLargestDelayNs}, delay_ns),
                                 port.rounded("delay_down_ns", {0, kLargestDelayNs}, delay_ns)});
  port.refuse_unknown();
}

void parse_segments(ObjectReader& top, FabricTiming& timing) {
  const json* segments = top.find_given("segments");
  if (segments == nullptr) return;
  if (!segments->is_array()) throw InputError("segments", "must be a list");
  for (std::size_t i = 0; i < segments->size(); ++i) {
    ObjectReader segment((*segments)[i], "segments[" + std::to_string(i) + "]");
    timing.segments.push_back({segment.rounded("line_rate_bit_s", {1'000, kLargestRateBitS}),
                               segment.rounded("latency_ns", {0, kLargestDelayNs})});
    segment.refuse_unknown();
  }
}

Route parse_route(const json& told, const std::string& path, std::size_t segments) {
  if (!told.is_array()) throw InputError(path, "must be a list of segments");
  Route route;
  for (const json& segment : told) {
    const Range known{0, static_cast<std::int64_t>(segments) - 1};
    route.push_back(static_cast<std::uint32_t>(read_integer(segment, path, known)));
  }
  return route;
}

void parse_routes(ObjectReader& top, FabricTiming& timing) {
  const json* routes = top.find_given("routes");
  if (routes == nullptr) return;
  const auto is_one_for_each_port = [&](const json& list) {
    return list.is_array() && list.size() == timing.ports.size();
  };
  if (!is_one_for_each_port(*routes)) throw InputError("routes", "must be a list with an entry for each port");
  for (std::size_t from = 0; from < routes->size(); ++from) {
    const std::string path = "routes[" + std::to_string(from) + "]";
    if (!is_one_for_each_port((*routes)[from])) throw InputError(path, "must be a list with a route to each port");
    timing.routes.emplace_back();
    for (const json& route : (*routes)[from]) {
      timing.routes.back().push_back(parse_route(route, path, timing.segments.size()));
    }
  }
}

std::optional<HoldRule> parse_hold(ObjectReader& top) {
  const json* hold = top.find_given("hold");
  if (hold == nullptr) return std::nullopt;
  ObjectReader section(*hold, top.path_of("hold"));
  const HoldRule rule{section.rounded("message_bytes", {1, kLargestBytes}),
                      section.rounded("within_bytes", {0, kLargestBytes}),
                      section.rounded("hold_ns", {1, kLargestDelayNs})};
  section.refuse_unknown();
  return rule;
}

}  // namespace

Config parse_config(const std::string& text) {
  json parsed;
  try {
    parsed = parse_json(text);
  } catch (const json::parse_error& error) {
    throw InputError(std::string("the configuration is not JSON: ") + error.what());
  }
  if (!parsed.is_object()) throw InputError("the configuration must be an object");
  ObjectReader top(parsed, "");
  Config config;
  config.name = need_text(top, "name");
  config.timing.wire = parse_wire(top);
  config.timing.switching = parse_switching(top);
  config.timing.switch_latency_ns = top.rounded("switch_latency_ns", {0, kLargestDelayNs}, 0);
  config.timing.port_buffer_bytes = top.rounded("port_buffer_bytes", {0, kLargestBytes}, kDefaultPortBufferBytes);
  config.timing.host_queue_bytes = top.rounded("host_queue_bytes", {0, kLargestBytes}, kDefaultHostQueueBytes);
  config.mtu = top.rounded("mtu", {68, kLargestMtu});
  if (top.find_given("cpu") != nullptr) config.cpu = static_cast<int>(top.rounded("cpu", {0, 65'535}));
  config.status = need_text(top, "status");
  if (top.find_given("lateness") != nullptr) config.lateness = need_text(top, "lateness");
  if (top.find_given("crossings") != nullptr) config.crossings = need_text(top, "crossings");
  const std::int64_t delay_ns = top.rounded("delay_ns", {0, kLargestDelayNs});
  const PortTiming of_fabric{top.rounded("line_rate_bit_s", {1'000, kLargestRateBitS}), delay_ns, delay_ns};
  const json& ports = top.need("ports");
  if (!ports.is_array() || ports.size() < 2) throw InputError("ports", "must be a list of two ports or more");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    parse_port(ObjectReader(ports[i], "ports[" + std::to_string(i) + "]"), of_fabric, config);
  }
  config.hold = parse_hold(top);
  config.timing.coalesce_ns = top.rounded("coalesce_ns", {0, kLargestDelayNs}, 0);
  config.timing.interrupt_period_ns = top.rounded("interrupt_period_ns", {0, kLargestDelayNs}, 0);
  if (config.timing.switching == Switching::none && ports.size() != 2) {
    throw InputError("switching",
                     "is \"none\", a cable between two ports, and there are " + std::to_string(ports.size()));
  }
  parse_segments(top, config.timing);
  parse_routes(top, config.timing);
  top.refuse_unknown();
  return config;
}

Config read_config(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw InputError("cannot read the configuration " + path + ": " + std::strerror(errno));
  try {
    return parse_config(text.str());
  } catch (const InputError& error) {
    throw InputError(path + ": " + error.what());
  }
}

}  // namespace fabricbench::emulated_switch
