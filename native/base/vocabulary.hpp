// The words that plans and records share with the Python side (src/fabricbench/model.py, record/lines.py); those of
// patterns are in core/pattern_facts.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace fabricbench {

enum class Layer { memory, frame, ip, udp, tcp, rdma, mpi };
enum class Receive { blocking, polling, library };
enum class StopReason { width, time, count };
enum class FailureCode { permission, unsupported, unreachable, timeout, corrupted, error };

template <class Enum>
inline constexpr std::array<std::string_view, 0> names_of{};
template <>
inline constexpr std::array<std::string_view, 7> names_of<Layer>{"memory", "frame", "ip", "udp", "tcp", "rdma", "mpi"};
template <>
inline constexpr std::array<std::string_view, 3> names_of<Receive>{"blocking", "polling", "library"};
template <>
inline constexpr std::array<std::string_view, 3> names_of<StopReason>{"width", "time", "count"};
template <>
inline constexpr std::array<std::string_view, 6> names_of<FailureCode>{"permission", "unsupported", "unreachable",
                                                                       "timeout",    "corrupted",   "error"};

/// The word of a value, as plans and records spell it.
template <class Enum>
constexpr std::string_view name_of(Enum value) {
  return names_of<Enum>[static_cast<std::size_t>(value)];
}

/// The value of a word, or nothing if the word is unknown.
template <class Enum>
constexpr std::optional<Enum> value_of(std::string_view name) {
  for (std::size_t i = 0; i < names_of<Enum>.size(); ++i) {
    if (names_of<Enum>[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace fabricbench
