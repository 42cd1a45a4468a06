// A list of ranks, as short as its order allows: ranks that follow each other in equal steps are one run. All ranks of
// a launch are one run, however many they are; so are the ranks of one node among nodes that are filled in turn.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/message.hpp"

namespace fabricbench {

class RankList {
 public:
  RankList() = default;
  explicit RankList(std::span<const int> ranks) {
    for (const int rank : ranks) push_back(rank);
  }

  /// Rank 0 and those after it.
  static RankList first(int count) {
    RankList list;
    if (count > 0) list.runs_.push_back({.count = static_cast<std::uint64_t>(count), .step = 1});
    return list;
  }

  void push_back(int rank);
  void append(const RankList& others);

  std::size_t size() const { return runs_.empty() ? 0 : runs_.back().begin + runs_.back().count; }
  bool empty() const { return runs_.empty(); }
  /// The rank at a place. Throws ControlError where the list has none there.
  int operator[](std::size_t place) const;
  /// Where a rank is; nothing where it is not in the list.
  std::optional<std::size_t> place_of(int rank) const;
  /// One by one.
  std::vector<int> expanded() const;

  auto operator<=>(const RankList&) const = default;

  std::string pack() const { return pack_values(runs_); }
  /// Throws ControlError where the bytes are no list.
  static RankList unpack(std::string_view payload);

 private:
  struct Run {
    std::uint64_t begin = 0;  // the place of its first rank
    std::uint64_t count = 0;
    std::int32_t first = 0;
    std::int32_t step = 0;

    std::int64_t at(std::uint64_t place) const { return first + std::int64_t{step} * static_cast<std::int64_t>(place); }
    auto operator<=>(const Run&) const = default;
  };

  std::vector<Run> runs_;
};

}  // namespace fabricbench
