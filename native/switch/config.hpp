// The switch's configuration as a value, read from JSON. Every problem is an InputError that names the key.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "switch/frame.hpp"
#include "switch/last_segments.hpp"
#include "switch/timing.hpp"

namespace fabricbench::emulated_switch {

struct PortConfig {
  std::string interface;
  Mac mac;
};

struct Config {
  std::string name;
  std::vector<PortConfig> ports;
  FabricTiming timing;
  std::int64_t mtu;
  std::optional<HoldRule> hold;  // of last segments
  std::optional<int> cpu;
  std::string status;
  std::string lateness;   // empty: not kept
  std::string crossings;  // the same
};

/// Reads the file; its text is as in parse_config.
Config read_config(const std::string& path);

/// Parses the text. Keys: name, ports [{interface, mac, line_rate_bit_s?, delay_ns?, delay_up_ns?, delay_down_ns?}] (up
/// is from the node to the switch), line_rate_bit_s, delay_ns, switching ("store-and-forward" | "cut-through" | "none":
/// a cable between two ports), mtu, status; and with defaults switch_latency_ns, port_buffer_bytes, overhead_bytes,
/// minimum_bytes, cell (null | {payload_bytes, cell_bytes}), host_queue_bytes, coalesce_ns, interrupt_period_ns, hold
/// (null | {message_bytes, within_bytes, hold_ns}: see last_segments.hpp), cpu (null | int), lateness (null | path: see
/// lateness_file.hpp), crossings (null | path: a line [arrival_unix_ns, wire_ns, due_unix_ns, sent_unix_ns] for each
/// frame of crossings.hpp), segments [{line_rate_bit_s, latency_ns}] and routes: for each port a list with, for each
/// port, the segments to it.
Config parse_config(const std::string& text);

}  // namespace fabricbench::emulated_switch
