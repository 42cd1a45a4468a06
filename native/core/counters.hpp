// What a cell costs the processors and what the kernel noted meanwhile: counters of each rank's process, of its host's
// network stack and port, and of its whole machine. Read before a cell's measured part and after it, never between two
// stamps; files and events are opened once a launch. Which counter is in which file is one table each in counters.cpp.
//
// A counter that cannot be read is left out and told once a launch (NotCounted); one that is 0 has counted nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hardware_events.hpp"
#include "base/socket.hpp"
#include "base/vocabulary.hpp"

namespace fabricbench {

/// Whose counters: of a rank's process; of its host, which is a network namespace and its port; of the machine below,
/// which several hosts of containers or a lab share.
enum class CounterScope { rank, host, machine };
template <>
inline constexpr std::array<std::string_view, 3> names_of<CounterScope>{"rank", "host", "machine"};

/// src/fabricbench/record/counters.py says what each is.
enum class Counter {
  elapsed_ns,
  reading_ns,
  messages_sent,
  messages_received,
  user_ns,
  system_ns,
  voluntary_switches,
  involuntary_switches,
  minor_faults,
  major_faults,
  migrations,
  cycles,
  instructions,
  cache_misses,
  user_cycles,
  user_instructions,
  user_cache_misses,
  busy_ns,
  idle_ns,
  interrupt_ns,
  softirq_ns,
  stolen_ns,
  interrupts,
  device_interrupts,
  softirqs,
  receive_softirqs,
  send_softirqs,
  context_switches,
  tcp_sent,
  tcp_received,
  tcp_retransmissions,
  tcp_timeouts,
  tcp_delayed_acks,
  tcp_drops,
  udp_receive_drops,
  udp_send_drops,
  ip_drops,
  port_receive_drops,
  port_send_drops,
  port_errors,
};
template <>
inline constexpr std::array<std::string_view, 40> names_of<Counter>{"elapsed_ns",
                                                                    "reading_ns",
                                                                    "messages_sent",
                                                                    "messages_received",
                                                                    "user_ns",
                                                                    "system_ns",
                                                                    "voluntary_switches",
                                                                    "involuntary_switches",
                                                                    "minor_faults",
                                                                    "major_faults",
                                                                    "migrations",
                                                                    "cycles",
                                                                    "instructions",
                                                                    "cache_misses",
                                                                    "user_cycles",
                                                                    "user_instructions",
                                                                    "user_cache_misses",
                                                                    "busy_ns",
                                                                    "idle_ns",
                                                                    "interrupt_ns",
                                                                    "softirq_ns",
                                                                    "stolen_ns",
                                                                    "interrupts",
                                                                    "device_interrupts",
                                                                    "softirqs",
                                                                    "receive_softirqs",
                                                                    "send_softirqs",
                                                                    "context_switches",
                                                                    "tcp_sent",
                                                                    "tcp_received",
                                                                    "tcp_retransmissions",
                                                                    "tcp_timeouts",
                                                                    "tcp_delayed_acks",
                                                                    "tcp_drops",
                                                                    "udp_receive_drops",
                                                                    "udp_send_drops",
                                                                    "ip_drops",
                                                                    "port_receive_drops",
                                                                    "port_send_drops",
                                                                    "port_errors"};

using Counts = std::map<Counter, std::uint64_t>;

/// How far counters went between two readings. One that went back, or was not read at first, has counted nothing that
/// can be told.
Counts counts_between(const Counts& before, const Counts& after);

/// Add those of another span of time.
void add_counts(Counts& total, const Counts& more);

/// What was counted of one scope during a cell, by the rank that read it.
struct CounterReport {
  int rank = 0;
  CounterScope scope = CounterScope::rank;
  Counts counts;
};

/// Why counters are not there: the kernel or the machine has none, this user may not read them, or nobody asked.
enum class Uncounted { absent, forbidden, unasked };
template <>
inline constexpr std::array<std::string_view, 3> names_of<Uncounted>{"absent", "forbidden", "unasked"};

struct NotCounted {
  std::vector<Counter> counters;
  Uncounted why = Uncounted::absent;
  std::string detail;  // which call or file said what
};

/// The counters of this process.
class RankCounters {
 public:
  /// @param open an event; without it none is asked for: while one is open the kernel has work of its own to do each
  /// time that the thread is switched in and out, which a test whose receivers sleep shows.
  explicit RankCounters(const HardwareEvents::Open& open = {}) {
    if (open) events_.emplace(open);
  }

  struct Reading {
    Counts counts;
    HardwareEvents::Readings events;
  };
  Reading read() const;
  Counts between(const Reading& before, const Reading& after) const;
  std::vector<NotCounted> not_counted() const;

 private:
  std::optional<HardwareEvents> events_;
};

/// A file of /proc or /sys that is read again and again, opened once.
class CounterFile {
 public:
  explicit CounterFile(const std::filesystem::path& path);

  /// Its text now; empty where it cannot be read. Valid until the next call.
  std::string_view text();
  int error() const { return error_; }  // errno of what failed first; 0 if nothing did
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Descriptor descriptor_;
  int error_ = 0;
  std::string text_;
};

/// The counters of this host's network stack and of the fabric's port, and, where asked, of the machine.
class HostCounters {
 public:
  /// @param interface of the fabric; empty where it has none
  /// @param root of the file system, another one in tests
  explicit HostCounters(const std::string& interface, const std::filesystem::path& root = "/");

  Counts read_host();
  Counts read_machine();
  /// What of these readings lacks.
  std::vector<NotCounted> not_counted();

 private:
  /// A number in a file of /proc/net with pairs of lines, names over values: where it stands.
  struct Place {
    Counter counter;
    std::size_t line;
    std::size_t field;
  };
  struct NamedValues {
    CounterFile file;
    std::vector<Place> places;
  };
  void read_named(NamedValues& from, Counts& counts);

  std::vector<NamedValues> network_;
  std::vector<std::pair<Counter, CounterFile>> port_;
  CounterFile processors_;
  std::vector<std::size_t> device_interrupts_;
};

/// All counters that a rank can read, opened once a launch.
struct LaunchCounters {
  RankCounters rank;
  HostCounters host;

  std::vector<NotCounted> not_counted();
};

/// As a rank tells it rank 0.
nlohmann::json to_record(const std::vector<NotCounted>& not_counted);

/// What ranks cannot count, as the header of a record has it: what is alike is told once, with the first of the ranks
/// and how many they are.
class UncountedOfRanks {
 public:
  void add(int rank, const nlohmann::json& not_counted);
  nlohmann::json to_record() const;

 private:
  struct Ranks {
    int first = 0;
    std::size_t count = 0;
  };
  std::map<std::string, Ranks> by_text_;
};

}  // namespace fabricbench
