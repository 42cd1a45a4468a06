// The plan: what one launch is told to measure. Its contract is src/fabricbench/record/probe_plan.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/interface.hpp"
#include "base/vocabulary.hpp"
#include "core/pattern_facts.hpp"
#include "core/secret.hpp"

namespace fabricbench {

/// The largest message that a plan may ask for: buffers are allocated and touched before the timing, and a rank holds
/// two or three of them.
inline constexpr std::size_t largest_message_bytes = std::size_t{1} << 32U;

/// The port that RDMA traffic takes, where it is not to be found from the interface.
struct RdmaEnd {
  std::optional<std::string> device{};
  std::optional<int> port{};
  std::optional<int> gid_index{};
};

struct PlanFabric {
  std::string name;
  std::optional<std::string> interface;
  std::optional<Subnet> subnet;
  int mtu = 1500;
  RdmaEnd rdma;
};

struct Stopping {
  std::size_t minimum_samples = 20;
  std::size_t maximum_samples = 100'000;
  double minimum_seconds = 0;
  double maximum_seconds = 0.5;
  double relative_width = 0.02;
  double confidence = 0.95;
};

/// What a plan gives a cell by name.
using ParameterValue = std::variant<std::int64_t, double, std::string>;
using Parameters = std::map<std::string, ParameterValue, std::less<>>;

/// As JSON has it: `3`, `0.5`, `"word"`.
std::string text_of(const ParameterValue& value);

/// What other ranks do while a cell is measured.
struct PlanCongestor {
  Layer layer = Layer::tcp;
  Pattern pattern = Pattern::incast;
  std::size_t message_bytes = 0;
  std::vector<int> ranks;
  Parameters parameters;
  bool is_idle = false;  // there, but sends nothing: the control of what the method itself adds
};

struct PlanProbe {
  int id = 0;
  Layer layer = Layer::tcp;
  Pattern pattern = Pattern::pingpong;
  std::size_t message_bytes = 0;
  Receive receive = Receive::blocking;
  std::vector<int> ranks{0, 1};
  std::size_t messages_per_sample = 1;
  std::size_t warmup_samples = 10;
  std::size_t verify_messages = 0;
  double reply_timeout_seconds = 0.25;
  Stopping stopping;
  Parameters parameters;
  std::optional<PlanCongestor> congestor;
};

struct Plan {
  std::string launch_id;
  std::uint32_t token = 0;
  Secret secret{};
  PlanFabric fabric;
  std::string output;
  std::vector<PlanProbe> probes;
  std::optional<double> patience_seconds;
  bool hardware_counters = false;
};

/// Read a plan from JSON text; InputError names the JSON path of the first thing that is wrong.
Plan parse_plan(std::string_view text);

/// The congestor of a probe as a probe of its own, measured by its ranks meanwhile.
PlanProbe congestor_probe(const PlanProbe& probe);

/// Whether a probe needs the ranks' clocks to agree.
bool needs_global_clock(const PlanProbe& probe);

/// Refuse a plan that names ranks which this launch does not have.
void check_ranks(const Plan& plan, int world_size);

}  // namespace fabricbench
