#include "switch/config.hpp"

#include <net/if.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/failure.hpp"

namespace fabricbench::emulated_switch {
namespace {

using nlohmann::json;

constexpr std::int64_t kDefaultPortBufferBytes = 512 * 1024;
constexpr std::int64_t kDefaultHostQueueBytes = 1024 * 1024;
constexpr std::int64_t kLargestMtu = 65'521;  // the largest IPv4 packet, less what an Ethernet header takes of 64 KiB
constexpr std::int64_t kLargestDelayNs = 10'000'000'000;
constexpr std::int64_t kLargestRateBitS = 1'000'000'000'000;
constexpr std::int64_t kLargestBytes = 1LL << 32;

/// One JSON object being read; remembers where it stands for messages, and which keys were asked for.
class Section {
 public:
  Section(const json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object_.is_object()) throw InputError((path_.empty() ? "the configuration" : path_) + " must be an object");
  }

  [[nodiscard]] std::string name_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  /// The value of a key, or null where it is missing or null.
  const json& value(const std::string& key) {
    known_.insert(key);
    static const json null;
    const auto found = object_.find(key);
    return found == object_.end() ? null : *found;
  }

  std::string text(const std::string& key) {
    const json& found = value(key);
    if (found.is_null()) throw InputError(name_of(key) + " is missing");
    if (!found.is_string() || found.get<std::string>().empty()) {
      throw InputError(name_of(key) + " must be a text, found " + found.dump());
    }
    return found.get<std::string>();
  }

  /// A whole number within the bounds; a missing one takes the default, or is an error where there is none.
  std::int64_t whole(const std::string& key, std::int64_t least, std::int64_t largest,
                     std::optional<std::int64_t> missing = std::nullopt) {
    const json& found = value(key);
    if (found.is_null()) {
      if (missing) return *missing;
      throw InputError(name_of(key) + " is missing");
    }
    // Python writes rates as floats: 1e8 is welcome, a fraction of a bit is rounded away.
    const double number = found.is_number() ? std::round(found.get<double>()) : std::nan("");
    if (!(number >= static_cast<double>(least) && number <= static_cast<double>(largest))) {
      throw InputError(name_of(key) + " must be a number from " + std::to_string(least) + " to " +
                       std::to_string(largest) + ", found " + found.dump());
    }
    return static_cast<std::int64_t>(number);
  }

  void reject_unknown_keys() const {
    for (const auto& [key, ignored] : object_.items()) {
      if (!known_.contains(key)) throw InputError(name_of(key) + " is not a known key");
    }
  }

 private:
  const json& object_;
  std::string path_;
  std::set<std::string> known_;
};

Mac parse_mac(const std::string& text, const std::string& key) {
  std::array<unsigned, 6> parts{};
  int used = 0;
  const int found = std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%n", &parts[0], &parts[1], &parts[2], &parts[3],
                                &parts[4], &parts[5], &used);
  if (found != 6 || static_cast<std::size_t>(used) != text.size()) {
    throw InputError(key + " must be a MAC address such as 02:00:00:00:00:01, found \"" + text + "\"");
  }
  if ((parts[0] & 1U) != 0) throw InputError(key + " is a group address, a port needs one host's: " + text);
  std::array<std::uint8_t, 6> bytes{};
  for (std::size_t i = 0; i < 6; ++i) bytes[i] = static_cast<std::uint8_t>(parts[i]);
  Mac mac = 0;
  std::memcpy(&mac, bytes.data(), bytes.size());
  return mac;
}

Switching parse_switching(Section& top) {
  const std::string text = top.text("switching");
  if (text == "store-and-forward") return Switching::store_and_forward;
  if (text == "cut-through") return Switching::cut_through;
  throw InputError("switching must be \"store-and-forward\" or \"cut-through\", found \"" + text + "\"");
}

Wire parse_wire(Section& top) {
  Wire wire;
  wire.overhead_bytes = top.whole("overhead_bytes", -14, 1024, wire.overhead_bytes);
  wire.minimum_bytes = top.whole("minimum_bytes", 1, 1024, wire.minimum_bytes);
  if (const json& cell = top.value("cell"); !cell.is_null()) {
    Section section(cell, "cell");
    wire.cell = CellTax{section.whole("payload_bytes", 1, 65'536), section.whole("cell_bytes", 1, 65'536)};
    section.reject_unknown_keys();
  }
  return wire;
}

void parse_port(Section port, const PortTiming& of_fabric, Config& config) {
  PortConfig parsed{port.text("interface"), parse_mac(port.text("mac"), port.name_of("mac"))};
  if (parsed.interface.size() >= IFNAMSIZ) {
    throw InputError(port.name_of("interface") + " is too long for an interface: \"" + parsed.interface + "\"");
  }
  for (const PortConfig& other : config.ports) {
    if (other.interface == parsed.interface) throw InputError(port.name_of("interface") + " is named twice");
    if (other.mac == parsed.mac) throw InputError(port.name_of("mac") + " is behind two ports");
  }
  config.ports.push_back(parsed);
  const std::int64_t delay_ns = port.whole("delay_ns", 0, kLargestDelayNs, of_fabric.delay_up_ns);
  config.timing.ports.push_back({port.whole("line_rate_bit_s", 1'000, kLargestRateBitS, of_fabric.line_rate_bit_s),
                                 port.whole("delay_up_ns", 0, kLargestDelayNs, delay_ns),
                                 port.whole("delay_down_ns", 0, kLargestDelayNs, delay_ns)});
  port.reject_unknown_keys();
}

}  // namespace

Config parse_config(const std::string& text) {
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::parse_error& error) {
    throw InputError(std::string("the configuration is not JSON: ") + error.what());
  }
  Section top(parsed, "");
  Config config;
  config.name = top.text("name");
  config.timing.wire = parse_wire(top);
  config.timing.switching = parse_switching(top);
  config.timing.switch_latency_ns = top.whole("switch_latency_ns", 0, kLargestDelayNs, 0);
  config.timing.port_buffer_bytes = top.whole("port_buffer_bytes", 0, kLargestBytes, kDefaultPortBufferBytes);
  config.timing.host_queue_bytes = top.whole("host_queue_bytes", 0, kLargestBytes, kDefaultHostQueueBytes);
  config.mtu = top.whole("mtu", 68, kLargestMtu);
  if (!top.value("cpu").is_null()) config.cpu = static_cast<int>(top.whole("cpu", 0, 65'535));
  config.status = top.text("status");
  if (!top.value("lateness").is_null()) config.lateness = top.text("lateness");
  const std::int64_t delay_ns = top.whole("delay_ns", 0, kLargestDelayNs);
  const PortTiming of_fabric{top.whole("line_rate_bit_s", 1'000, kLargestRateBitS), delay_ns, delay_ns};
  const json& ports = top.value("ports");
  if (!ports.is_array() || ports.size() < 2) throw InputError("ports must be a list of two ports or more");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    parse_port(Section(ports[i], "ports[" + std::to_string(i) + "]"), of_fabric, config);
  }
  top.reject_unknown_keys();
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
