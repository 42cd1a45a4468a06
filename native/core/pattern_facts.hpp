// The table of patterns: names, family, metric, ranks and parameters of each, as src/fabricbench/patterns.py has them.
// The table itself (Family, Metric, Pattern, their names and the rows) is core/pattern_table.inc, which `make docs`
// writes from there: nothing that is in it is said a second time in C++. This header says what a row is made of.
//
// To add a pattern: a line in patterns.py, `make docs`, and a header of its own with a type of its name,
//
//   of two ranks            pattern/NAME.hpp, as pattern/patterns.hpp says
//   of many                 pattern/NAME.hpp, as pattern/channels.hpp says
//   an operation of MPI     mpi_operation/NAME.hpp, as mpi_operation/operation.hpp says
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/vocabulary.hpp"

namespace fabricbench {

enum class Family;
enum class Metric;
enum class Pattern;

/// Some of the layers.
struct LayerSet {
  unsigned bits = 0;

  template <class... Each>
  static constexpr LayerSet of(Each... layers) {
    return {(... | (1U << static_cast<unsigned>(layers)))};
  }
  constexpr bool has(Layer layer) const { return (bits >> static_cast<unsigned>(layer) & 1U) != 0; }
};
inline constexpr LayerSet any_layer{~0U};

/// What a plan may tell a pattern: one of some words, the first else; or a whole number from `least` to `most`.
struct ParameterFacts {
  std::string_view name;
  std::span<const std::string_view> words{};
  std::size_t usual = 0;
  std::size_t least = 0;
  std::size_t most = 0;
  LayerSet layers = any_layer;
};

inline constexpr std::size_t any_number = 0;

/// A row of the table.
struct PatternFacts {
  Family family;  // how it is measured, and so how the samples of its ranks become those of the cell
  Metric metric;
  LayerSet layers;
  std::size_t least_ranks = 2;
  std::size_t most_ranks = any_number;
  std::size_t smallest_message_bytes = 1;
  bool has_size = true;
  bool stamps_both_ends = false;  // of a pair: both ranks keep the time, on clocks that agree
  bool is_stream = false;         // of a pair: one way, a sample is a window of messages; of memory a sweep
  std::span<const ParameterFacts> parameters{};
};

#include "core/pattern_table.inc"

constexpr const PatternFacts& facts_of(Pattern pattern) { return pattern_table[static_cast<std::size_t>(pattern)]; }

/// A parameter that a pattern has; none where it has none of that name.
constexpr const ParameterFacts* find_parameter(Pattern pattern, std::string_view name) {
  for (const ParameterFacts& parameter : facts_of(pattern).parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

/// A parameter that cells over a layer have, whatever their pattern is; likewise.
constexpr const ParameterFacts* find_parameter(Layer layer, std::string_view name) {
  for (const ParameterFacts& parameter : layer_parameters) {
    if (parameter.name == name && parameter.layers.has(layer)) return &parameter;
  }
  return nullptr;
}

/// A pattern of the table with the type that its header defines, and a list of them.
template <Pattern name, class Type>
struct Listed : Type {
  static constexpr Pattern pattern = name;
};
template <class... Each>
struct PatternList {};

}  // namespace fabricbench
