#include "core/plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <unordered_set>

#include "base/json_text.hpp"
#include "base/object_reader.hpp"
#include "base/program.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

// Sample buffers are allocated and touched before the timing: this many are 800 MB, and no campaign comes near.
constexpr std::int64_t most_samples = 100'000'000;
constexpr std::int64_t most_ranks = 1 << 20;
constexpr std::int64_t largest_mtu = 65536;
constexpr std::int64_t largest_token = 0xffffffffLL;

template <class Enum>
Enum read_word(ObjectReader& reader, std::string_view key, std::optional<Enum> fallback = std::nullopt) {
  if (fallback && reader.find(key) == nullptr) return *fallback;
  const std::string word = reader.text(key);
  if (const auto value = value_of<Enum>(word)) return *value;
  std::string list;
  for (const std::string_view name : names_of<Enum>) list += (list.empty() ? "" : ", ") + std::string(name);
  throw InputError(reader.path_of(key), "'" + word + "' is unknown; known are " + list);
}

/// False where it is not there.
bool read_flag(ObjectReader& reader, std::string_view key) {
  const json* value = reader.find(key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) throw InputError(reader.path_of(key), "must be true or false");
  return value->get<bool>();
}

std::size_t read_size(ObjectReader& reader, std::string_view key, Range range,
                      std::optional<std::size_t> fallback = {}) {
  std::optional<std::int64_t> otherwise;
  if (fallback) otherwise = static_cast<std::int64_t>(*fallback);
  return static_cast<std::size_t>(reader.integer(key, range, otherwise));
}

std::size_t read_message_bytes(ObjectReader& reader) {
  return read_size(reader, "message_bytes", {0, static_cast<std::int64_t>(largest_message_bytes)});
}

std::optional<int> read_number_or_null(ObjectReader& reader, std::string_view key, Range range) {
  const json* value = reader.find_given(key);
  if (value == nullptr) return std::nullopt;
  return static_cast<int>(read_integer(*value, reader.path_of(key), range));
}

RdmaEnd read_rdma(const json& value, const std::string& path) {
  ObjectReader reader(value, path);
  RdmaEnd end;
  end.device = reader.text_or_null("device");
  end.port = read_number_or_null(reader, "port", {1, 254});
  end.gid_index = read_number_or_null(reader, "gid_index", {0, 1023});
  reader.refuse_unknown();
  return end;
}

PlanFabric read_fabric(const json& value, const std::string& path) {
  ObjectReader reader(value, path);
  PlanFabric fabric;
  fabric.name = reader.text("name");
  fabric.interface = reader.text_or_null("interface");
  if (const auto subnet = reader.text_or_null("subnet")) {
    fabric.subnet = parse_subnet(*subnet);
    if (!fabric.subnet) {
      throw InputError(reader.path_of("subnet"),
                       "must be an IPv4 network such as 10.98.1.0/24, found '" + *subnet + "'");
    }
  }
  fabric.mtu = static_cast<int>(reader.integer("mtu", {68, largest_mtu}, fabric.mtu));
  if (const json* rdma = reader.find_given("rdma")) {
    fabric.rdma = read_rdma(*rdma, reader.path_of("rdma"));
  }
  reader.refuse_unknown();
  return fabric;
}

Stopping read_stopping(const json& value, const std::string& path) {
  ObjectReader reader(value, path);
  Stopping stopping;
  stopping.minimum_samples = read_size(reader, "minimum_samples", {1, most_samples}, stopping.minimum_samples);
  stopping.maximum_samples = read_size(reader, "maximum_samples", {1, most_samples}, stopping.maximum_samples);
  stopping.minimum_seconds = reader.not_negative("minimum_seconds", stopping.minimum_seconds);
  stopping.maximum_seconds = reader.seconds("maximum_seconds", stopping.maximum_seconds);
  stopping.relative_width = reader.positive("relative_width", stopping.relative_width);
  stopping.confidence = reader.positive("confidence", stopping.confidence);
  if (stopping.confidence >= 1) throw InputError(reader.path_of("confidence"), "must be less than 1");
  reader.refuse_unknown();
  return stopping;
}

std::vector<int> read_ranks(const json& value, const std::string& path) {
  if (!value.is_array() || value.empty()) throw InputError(path, "must be a list of ranks with at least one of them");
  std::vector<int> ranks;
  std::unordered_set<int> named;  // a plan names every rank of a large launch in every cell
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string element = path + "[" + std::to_string(i) + "]";
    const int rank = static_cast<int>(read_integer(value[i], element, {0, most_ranks}));
    if (!named.insert(rank).second) throw InputError(element, "names the same rank twice");
    ranks.push_back(rank);
  }
  return ranks;
}

Parameters read_parameters(const json& value, const std::string& path) {
  if (!value.is_object()) throw InputError(path, "must be an object");
  Parameters parameters;
  for (const auto& [key, parameter] : value.items()) {
    if (parameter.is_string()) {
      parameters[key] = parameter.get<std::string>();
    } else if (parameter.is_number_float()) {
      parameters[key] = parameter.get<double>();
    } else if (parameter.is_number()) {
      constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
      if (parameter.is_number_unsigned() && parameter.get<std::uint64_t>() > std::uint64_t{largest}) {
        throw InputError(path + "." + key,
                         "must be at most " + std::to_string(largest) + ", found " + json_text(parameter));
      }
      parameters[key] = parameter.get<std::int64_t>();
    } else {
      throw InputError(path + "." + key, "must be a string or a number");
    }
  }
  return parameters;
}

PlanCongestor read_congestor(const json& value, const std::string& path) {
  ObjectReader reader(value, path);
  PlanCongestor congestor;
  congestor.layer = read_word<Layer>(reader, "layer");
  congestor.pattern = read_word<Pattern>(reader, "pattern");
  if (facts_of(congestor.pattern).family != Family::flood || congestor.layer == Layer::memory) {
    throw InputError(reader.path_of("pattern"),
                     "a congestor must be a flood of a network layer, such as incast or chaos");
  }
  congestor.message_bytes = read_message_bytes(reader);
  congestor.ranks = read_ranks(reader.need("ranks"), reader.path_of("ranks"));
  if (const json* parameters = reader.find("parameters")) {
    congestor.parameters = read_parameters(*parameters, reader.path_of("parameters"));
  }
  congestor.is_idle = read_flag(reader, "is_idle");
  reader.refuse_unknown();
  return congestor;
}

PlanProbe read_probe(const json& value, const std::string& path) {
  ObjectReader reader(value, path);
  PlanProbe probe;
  probe.id = static_cast<int>(reader.integer("id", {0, std::numeric_limits<int>::max()}));
  probe.layer = read_word<Layer>(reader, "layer");
  probe.pattern = read_word<Pattern>(reader, "pattern");
  probe.message_bytes = read_message_bytes(reader);
  probe.receive = read_word<Receive>(reader, "receive", probe.receive);
  if (const json* ranks = reader.find("ranks")) probe.ranks = read_ranks(*ranks, reader.path_of("ranks"));
  probe.messages_per_sample = read_size(reader, "messages_per_sample", {1, most_samples}, probe.messages_per_sample);
  probe.warmup_samples = read_size(reader, "warmup_samples", {0, most_samples}, probe.warmup_samples);
  probe.verify_messages = read_size(reader, "verify_messages", {0, most_samples}, probe.verify_messages);
  probe.reply_timeout_seconds = reader.seconds("reply_timeout_seconds", probe.reply_timeout_seconds);
  if (const json* stopping = reader.find("stopping")) {
    probe.stopping = read_stopping(*stopping, reader.path_of("stopping"));
  }
  if (const json* parameters = reader.find("parameters")) {
    probe.parameters = read_parameters(*parameters, reader.path_of("parameters"));
  }
  if (const json* congestor = reader.find("congestor"); congestor != nullptr && !congestor->is_null()) {
    probe.congestor = read_congestor(*congestor, reader.path_of("congestor"));
    const std::unordered_set<int> members(probe.ranks.begin(), probe.ranks.end());
    for (const int rank : probe.congestor->ranks) {
      if (rank == 0) {
        throw InputError(reader.path_of("congestor") + ".ranks", "rank 0 directs the launch and cannot congest it");
      }
      if (!members.contains(rank)) continue;
      throw InputError(reader.path_of("congestor") + ".ranks",
                       "rank " + std::to_string(rank) + " takes part in the cell itself");
    }
  }
  reader.refuse_unknown();
  return probe;
}

}  // namespace

std::string text_of(const ParameterValue& value) {
  return std::visit([](const auto& held) { return json_text(json(held)); }, value);
}

Plan parse_plan(std::string_view text) {
  json document;
  try {
    document = parse_json(text);
  } catch (const json::parse_error& error) {
    throw InputError("$", std::string("is not JSON: ") + error.what());
  }
  ObjectReader reader(document, "$");
  constexpr std::string_view schema = "fabricbench/plan/1";
  if (reader.find("schema") != nullptr && reader.text("schema") != schema) {
    throw InputError("$.schema", "must be " + std::string(schema) + ", found " + reader.text("schema"));
  }
  Plan plan;
  plan.launch_id = reader.text("launch_id");
  plan.token = static_cast<std::uint32_t>(reader.integer("token", {0, largest_token}));
  if (reader.find("secret") != nullptr) {
    const auto secret = parse_secret(reader.text("secret"));
    if (!secret) throw InputError(reader.path_of("secret"), "must be 32 hexadecimal digits");
    plan.secret = *secret;
  }
  plan.fabric = read_fabric(reader.need("fabric"), "$.fabric");
  plan.output = reader.text("output");
  const json& probes = reader.need("probes");
  if (!probes.is_array() || probes.empty()) throw InputError("$.probes", "must be a list with at least one probe");
  std::set<int> ids;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const std::string path = "$.probes[" + std::to_string(i) + "]";
    plan.probes.push_back(read_probe(probes[i], path));
    if (!ids.insert(plan.probes.back().id).second) throw InputError(path + ".id", "is used twice");
  }
  if (reader.find_given("patience_seconds") != nullptr) plan.patience_seconds = reader.seconds("patience_seconds");
  plan.hardware_counters = read_flag(reader, "hardware_counters");
  reader.refuse_unknown();
  return plan;
}

PlanProbe congestor_probe(const PlanProbe& probe) {
  const PlanCongestor& congestor = *probe.congestor;
  PlanProbe other = probe;
  other.layer = congestor.layer;
  other.pattern = congestor.pattern;
  other.message_bytes = congestor.message_bytes;
  other.ranks = congestor.ranks;
  other.parameters = congestor.parameters;
  other.receive = congestor.layer == Layer::mpi ? Receive::library : Receive::blocking;
  other.verify_messages = 0;
  other.congestor.reset();
  return other;
}

bool needs_global_clock(const PlanProbe& probe) {
  const Family family = facts_of(probe.pattern).family;
  return family == Family::flood || family == Family::lockstep || family == Family::operation ||
         facts_of(probe.pattern).stamps_both_ends;
}

namespace {

std::string layers_of(Pattern pattern) {
  std::string list;
  for (std::size_t i = 0; i < names_of<Layer>.size(); ++i) {
    if (!facts_of(pattern).layers.has(static_cast<Layer>(i))) continue;
    list += (list.empty() ? "" : ", ") + std::string(names_of<Layer>[i]);
  }
  return list;
}

/// Over a network; one rank alone is enough only for layer memory.
std::size_t least_ranks_of(const PatternFacts& facts) { return std::max<std::size_t>(facts.least_ranks, 2); }

std::string needed_ranks(const PatternFacts& facts) {
  const std::string least = std::to_string(least_ranks_of(facts));
  if (facts.most_ranks == any_number) return "at least " + least + " ranks";
  return least_ranks_of(facts) == facts.most_ranks ? least + " ranks"
                                                   : least + " to " + std::to_string(facts.most_ranks);
}

void check_number(Layer layer, Pattern pattern, std::size_t number, const std::string& path) {
  const PatternFacts& facts = facts_of(pattern);
  if (number >= least_ranks_of(facts) && (facts.most_ranks == any_number || number <= facts.most_ranks)) return;
  throw InputError(path, std::string(name_of(pattern)) + " over " + std::string(name_of(layer)) + " needs " +
                             needed_ranks(facts) + ", found " + std::to_string(number));
}

void check_there(std::span<const int> ranks, int world_size, const std::string& path) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < world_size) continue;
    throw InputError(path + "[" + std::to_string(i) + "]",
                     "rank " + std::to_string(ranks[i]) + " is not in this launch, which has " +
                         std::to_string(world_size) + (world_size == 1 ? std::string(why_alone) : ""));
  }
}

/// Refuse a probe whose pattern its layer or its ranks cannot have.
void check_members(const PlanProbe& probe, int world_size, const std::string& path) {
  if (facts_of(probe.pattern).family == Family::workload) {
    throw InputError(path + ".pattern", std::string(name_of(probe.pattern)) +
                                            " is a workload, which a program of its own runs: fabricbench-" +
                                            std::string(name_of(probe.pattern)));
  }
  if (probe.layer == Layer::memory) {
    // Memory is measured by ranks[0] alone, whoever else is named.
    if (!facts_of(probe.pattern).layers.has(Layer::memory)) {
      throw InputError(path + ".pattern", std::string(name_of(probe.pattern)) +
                                              " is not for memory: one rank has nobody to exchange with");
    }
    check_there(std::span(probe.ranks).first(1), world_size, path + ".ranks");
    return;
  }
  if (!facts_of(probe.pattern).layers.has(probe.layer)) {
    throw InputError(path + ".layer", std::string(name_of(probe.pattern)) + " is for layer " +
                                          layers_of(probe.pattern) + ", found layer " +
                                          std::string(name_of(probe.layer)));
  }
  check_number(probe.layer, probe.pattern, probe.ranks.size(), path + ".ranks");
  check_there(probe.ranks, world_size, path + ".ranks");
}

void check_congestor(const PlanCongestor& congestor, int world_size, const std::string& path) {
  check_number(congestor.layer, congestor.pattern, congestor.ranks.size(), path + ".ranks");
  check_there(congestor.ranks, world_size, path + ".ranks");
}

}  // namespace

void check_ranks(const Plan& plan, int world_size) {
  for (std::size_t i = 0; i < plan.probes.size(); ++i) {
    const PlanProbe& probe = plan.probes[i];
    const std::string path = "$.probes[" + std::to_string(i) + "]";
    check_members(probe, world_size, path);
    if (probe.congestor) check_congestor(*probe.congestor, world_size, path + ".congestor");
  }
}

}  // namespace fabricbench
