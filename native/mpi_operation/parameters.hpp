// What a plan says of an operation beside its message size.
#pragma once

#include <string>
#include <string_view>

#include "core/failure.hpp"
#include "core/plan.hpp"

namespace fabricbench {

enum class CallMode { blocking, nonblocking, persistent };
template <>
inline constexpr std::array<std::string_view, 3> names_of<CallMode>{"blocking", "nonblocking", "persistent"};

/// How an epoch of one-sided access is closed.
enum class Synchronisation { fence, lock, flush };
template <>
inline constexpr std::array<std::string_view, 3> names_of<Synchronisation>{"fence", "lock", "flush"};

/// The word that the plan has for an enum, or the enum's first.
template <class Enum>
Enum word_parameter(const PlanProbe& probe, const char* key) {
  if (!probe.parameters.contains(key)) return Enum{};
  const nlohmann::json& value = probe.parameters[key];
  const auto found = value.is_string() ? value_of<Enum>(value.get<std::string>()) : std::nullopt;
  if (found) return *found;
  std::string list;
  for (const std::string_view name : names_of<Enum>) list += (list.empty() ? "" : ", ") + std::string(name);
  throw Failure(FailureCode::unsupported, std::string(key) + " must be one of " + list + ", found " + value.dump());
}

/// A number from 1 to `most`.
inline int number_parameter(const PlanProbe& probe, const char* key, int otherwise, int most) {
  if (!probe.parameters.contains(key)) return otherwise;
  const nlohmann::json& value = probe.parameters[key];
  const bool is_number = value.is_number_integer() && value >= 1 && value <= most;
  if (is_number) return value.get<int>();
  throw Failure(FailureCode::unsupported,
                std::string(key) + " must be an integer from 1 to " + std::to_string(most) + ", found " + value.dump());
}

}  // namespace fabricbench
