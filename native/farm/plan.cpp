#include "farm/plan.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.hpp"
#include "base/object_reader.hpp"

namespace fabricbench::farm {
namespace {

using nlohmann::json;

constexpr std::string_view schema = "fabricbench/farm-plan/1";
constexpr std::int64_t most_jobs = 1'000'000;
constexpr std::int64_t most_at_once = 4096;
constexpr std::int64_t most_retries = 1000;
constexpr std::int64_t most_output_bytes = std::int64_t{64} << 20U;
constexpr std::string_view output_word = "{output}";

std::vector<std::string> read_command(ObjectReader& reader) {
  std::vector<std::string> command;
  const json& value = reader.need("command");
  if (!value.is_array()) throw InputError(reader.path_of("command"), "needed a list of words");
  for (const json& word : value) {
    if (!word.is_string()) throw InputError(reader.path_of("command"), "needed words, found " + json_text(word));
    command.push_back(word.get<std::string>());
  }
  return command;
}

json parsed(const std::string& text) {
  try {
    return parse_json(text);
  } catch (const json::exception& error) {
    throw InputError("the plan of the farm", error.what());
  }
}

}  // namespace

FarmPlan parse_farm_plan(const std::string& text) {
  const json value = parsed(text);
  ObjectReader reader(value, "");
  if (const std::string found = reader.text("schema"); found != schema) {
    throw InputError("schema", "needed '" + std::string(schema) + "', found '" + found +
                                   "': is another fabricbench-farm installed beside this fabricbench?");
  }
  FarmPlan plan;
  plan.name = reader.text("name");
  plan.jobs = static_cast<int>(reader.integer("jobs", {1, most_jobs}));
  plan.input_bytes = static_cast<std::uint64_t>(reader.integer("input_bytes", {0}));
  plan.input_path = reader.text_or_null("input_path");
  plan.command = read_command(reader);
  plan.at_once = static_cast<int>(reader.integer("at_once", {1, most_at_once}));
  plan.retries = static_cast<int>(reader.integer("retries", {0, most_retries}));
  plan.job_seconds = reader.seconds("job_seconds");
  plan.output_bytes = static_cast<std::uint64_t>(reader.integer("output_bytes", {0, most_output_bytes}));
  plan.scratch = reader.text("scratch");
  plan.patience_seconds = reader.seconds("patience_seconds");
  reader.refuse_unknown();
  return plan;
}

std::vector<std::string> filled(const std::vector<std::string>& command, const Placeholders& values) {
  const std::array<std::pair<std::string_view, std::string>, 5> known{{{"{job}", std::to_string(values.job)},
                                                                       {"{attempt}", std::to_string(values.attempt)},
                                                                       {"{input}", values.input},
                                                                       {output_word, values.output},
                                                                       {"{digest}", values.digest}}};
  std::vector<std::string> words;
  for (const std::string& word : command) {
    std::string made;
    for (std::size_t at = 0; at < word.size();) {
      const std::string_view rest = std::string_view(word).substr(at);
      const auto* const found =
          std::ranges::find_if(known, [rest](const auto& each) { return rest.starts_with(each.first); });
      made += found == known.end() ? std::string(1, word[at]) : found->second;
      at += found == known.end() ? 1 : found->first.size();
    }
    words.push_back(std::move(made));
  }
  return words;
}

bool names_output(const std::vector<std::string>& command) {
  return std::ranges::any_of(command,
                             [](const std::string& word) { return word.find(output_word) != std::string::npos; });
}

}  // namespace fabricbench::farm
