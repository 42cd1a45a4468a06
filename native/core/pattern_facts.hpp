// What the program must know of every pattern before it runs it; src/fabricbench/patterns.py has the same table, and a
// test holds the two together.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/vocabulary.hpp"

namespace fabricbench {

/// How a pattern is measured, and so how the samples of its ranks become those of the cell.
enum class Family { pair, lockstep, flood, matrix, operation, workload };
template <>
inline constexpr std::array<std::string_view, 6> names_of<Family>{"pair",   "lockstep",  "flood",
                                                                  "matrix", "operation", "workload"};

enum class Metric { round_trip_time, operation_time, throughput, message_rate };
template <>
inline constexpr std::array<std::string_view, 4> names_of<Metric>{"round_trip_time", "operation_time", "throughput",
                                                                  "message_rate"};

inline constexpr std::size_t any_number = 0;

struct PatternFacts {
  Family family;
  Metric metric;
  std::size_t least_ranks = 2;
  std::size_t most_ranks = any_number;
};

constexpr PatternFacts facts_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::pingpong:
    case Pattern::oneway:
    case Pattern::paced:
      return {Family::pair, Metric::round_trip_time, 2, 2};
    case Pattern::burst:
      return {Family::pair, Metric::operation_time, 2, 2};
    case Pattern::stream:
      return {Family::pair, Metric::throughput, 2, 2};
    case Pattern::pingping:
      return {Family::lockstep, Metric::operation_time, 2, 2};
    case Pattern::sendrecv:
    case Pattern::exchange:
    case Pattern::halo:
      return {Family::lockstep, Metric::operation_time};
    case Pattern::bistream:
      return {Family::flood, Metric::throughput, 2, 2};
    case Pattern::star:
    case Pattern::ring:
    case Pattern::chaos:
    case Pattern::incast:
    case Pattern::outcast:
    case Pattern::bisection:
      return {Family::flood, Metric::throughput};
    case Pattern::message_rate:
      return {Family::flood, Metric::message_rate};
    case Pattern::pairs:
      return {Family::matrix, Metric::round_trip_time};
    case Pattern::pairs_stream:
      return {Family::matrix, Metric::throughput};
    case Pattern::put:
    case Pattern::get:
    case Pattern::accumulate:
    case Pattern::fetch_and_op:
    case Pattern::compare_and_swap:
    case Pattern::partitioned:
    case Pattern::threaded:
      return {Family::operation, Metric::operation_time, 2, 2};
    case Pattern::npb:
    case Pattern::workload:
      return {Family::workload, Metric::operation_time, 1};
    default:
      return {Family::operation, Metric::operation_time};
  }
}

}  // namespace fabricbench
