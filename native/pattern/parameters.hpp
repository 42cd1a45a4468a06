// The parameters that a plan gives a pattern, checked: a Failure names a wrong one and what is possible.
#pragma once

#include <cstdint>
#include <string>

#include "core/failure.hpp"
#include "core/plan.hpp"

namespace fabricbench {

[[noreturn]] inline void refuse_parameter(const PlanProbe& probe, const char* name, const std::string& needed) {
  throw Failure(FailureCode::unsupported,
                std::string(name) + " must be " + needed + ", found " + probe.parameters[name].dump());
}

inline std::size_t whole_parameter(const PlanProbe& probe, const char* name, std::size_t fallback, std::size_t least,
                                   std::size_t most) {
  if (!probe.parameters.contains(name)) return fallback;
  const nlohmann::json& value = probe.parameters[name];
  if (value.is_number_integer() && value.get<std::int64_t>() >= static_cast<std::int64_t>(least) &&
      value.get<std::int64_t>() <= static_cast<std::int64_t>(most)) {
    return value.get<std::size_t>();
  }
  refuse_parameter(probe, name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

inline double number_parameter(const PlanProbe& probe, const char* name, double fallback, double least, double most) {
  if (!probe.parameters.contains(name)) return fallback;
  const nlohmann::json& value = probe.parameters[name];
  if (value.is_number() && value.get<double>() >= least && value.get<double>() <= most) return value.get<double>();
  refuse_parameter(probe, name, "a number from " + std::to_string(least) + " to " + std::to_string(most));
}

}  // namespace fabricbench
