#include "core/rank_list.hpp"

#include <algorithm>
#include <limits>

namespace fabricbench {

void RankList::push_back(int rank) {
  if (!runs_.empty()) {
    Run& last = runs_.back();
    if (last.count == 1) last.step = rank - last.first;
    if (last.at(last.count) == rank) {
      ++last.count;
      return;
    }
  }
  runs_.push_back({.begin = size(), .count = 1, .first = rank});
}

void RankList::append(const RankList& others) {
  for (const Run& run : others.runs_) {
    // The first two find the run that they go on, or begin one; the others follow in the same steps.
    const std::uint64_t taken = std::min<std::uint64_t>(run.count, 2);
    for (std::uint64_t i = 0; i < taken; ++i) push_back(static_cast<int>(run.at(i)));
    if (taken == run.count) continue;
    Run& last = runs_.back();
    if (last.count == 1) last.step = run.step;
    last.count += run.count - taken;
  }
}

int RankList::operator[](std::size_t place) const {
  if (place >= size()) {
    throw ControlError("a list of " + std::to_string(size()) + " ranks has no place " + std::to_string(place));
  }
  const auto after = std::ranges::upper_bound(runs_, place, {}, &Run::begin);
  const Run& run = *std::prev(after);
  return static_cast<int>(run.at(place - run.begin));
}

std::optional<std::size_t> RankList::place_of(int rank) const {
  for (const Run& run : runs_) {
    if (run.step == 0 || run.count == 1) {
      if (run.first == rank) return run.begin;
      continue;
    }
    const std::int64_t distance = std::int64_t{rank} - run.first;
    if (distance % run.step != 0) continue;
    const std::int64_t place = distance / run.step;
    if (place >= 0 && static_cast<std::uint64_t>(place) < run.count) return run.begin + static_cast<std::size_t>(place);
  }
  return std::nullopt;
}

std::vector<int> RankList::expanded() const {
  std::vector<int> ranks;
  ranks.reserve(size());
  for (const Run& run : runs_) {
    for (std::uint64_t i = 0; i < run.count; ++i) ranks.push_back(static_cast<int>(run.at(i)));
  }
  return ranks;
}

RankList RankList::unpack(std::string_view payload) {
  RankList list;
  list.runs_ = unpack_values<Run>(payload);
  std::uint64_t begin = 0;
  for (const Run& run : list.runs_) {
    if (run.begin != begin || run.count == 0 || run.count > std::uint64_t{std::numeric_limits<std::int32_t>::max()}) {
      throw ControlError("it has a list of ranks whose runs do not follow each other");
    }
    begin += run.count;
  }
  return list;
}

}  // namespace fabricbench
