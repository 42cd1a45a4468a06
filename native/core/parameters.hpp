// The parameters that a plan gives a pattern, by the table's defaults and bounds (core/pattern_facts.hpp): a Failure
// names a wrong one and what is possible.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/failure.hpp"
#include "core/plan.hpp"

namespace fabricbench {

[[noreturn]] inline void refuse_parameter(const PlanProbe& probe, const std::string& name, const std::string& needed) {
  throw Failure(FailureCode::unsupported,
                name + " must be " + needed + ", found " + text_of(probe.parameters.at(name)));
}

/// `a or b`, `one of a, b, c`.
inline std::string choice_of(std::span<const std::string_view> words) {
  if (words.size() == 2) return std::string(words[0]) + " or " + std::string(words[1]);
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "one of " : ", ") + std::string(word);
  return list;
}

/// What the table says of a parameter that a pattern or a layer reads.
template <class Owner>
const ParameterFacts& parameter_facts(Owner owner, const std::string& name) {
  if (const ParameterFacts* const facts = find_parameter(owner, name)) return *facts;
  throw Failure(FailureCode::unsupported,
                "the table of patterns has no parameter " + name + " of " + std::string(name_of(owner)));
}

inline std::size_t whole_value(const PlanProbe& probe, const std::string& name, const ParameterFacts& facts) {
  const auto given = probe.parameters.find(name);
  if (given == probe.parameters.end()) return facts.usual;
  const auto* const number = std::get_if<std::int64_t>(&given->second);
  if (number != nullptr && *number >= static_cast<std::int64_t>(facts.least) &&
      *number <= static_cast<std::int64_t>(facts.most)) {
    return static_cast<std::size_t>(*number);
  }
  refuse_parameter(probe, name, "an integer from " + std::to_string(facts.least) + " to " + std::to_string(facts.most));
}

/// A whole number that the probe's pattern takes, or its layer.
inline std::size_t whole_parameter(const PlanProbe& probe, const std::string& name) {
  return whole_value(probe, name, parameter_facts(probe.pattern, name));
}
inline std::size_t whole_layer_parameter(const PlanProbe& probe, const std::string& name) {
  return whole_value(probe, name, parameter_facts(probe.layer, name));
}

/// One of the words that the table has for a parameter, as the enum in `words` that it is there; the first without one.
template <class Enum>
Enum word_parameter(const PlanProbe& probe, const std::string& name) {
  const auto given = probe.parameters.find(name);
  if (given == probe.parameters.end()) return Enum{};
  const auto* const word = std::get_if<std::string>(&given->second);
  const auto found = word == nullptr ? std::nullopt : value_of<Enum>(*word);
  if (found) return *found;
  refuse_parameter(probe, name, choice_of(names_of<Enum>));
}

}  // namespace fabricbench
