#include "pattern/channels.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "base/failure.hpp"
#include "core/parameters.hpp"
#include "pattern/group_patterns.inc"

namespace fabricbench {
namespace {

/// What the listed types say, by the pattern's name; those left out are none of many ranks.
struct GroupEntry {
  void (*links)(const Group& group, Links& links) = nullptr;
  std::size_t (*rounds)(const Group& group) = nullptr;
  std::size_t (*channels)(const Group& group) = nullptr;
};

template <class Each>
constexpr GroupEntry entry_for() {
  GroupEntry entry{.links = Each::links};
  if constexpr (requires { &Each::rounds; }) {
    static_assert(facts_of(Each::pattern).family == Family::flood, "members that take turns have one round");
    entry.rounds = Each::rounds;
  }
  if constexpr (requires { &Each::channels; }) entry.channels = Each::channels;
  return entry;
}

template <class... Each>
constexpr auto entries_of(PatternList<Each...>) {
  std::array<GroupEntry, names_of<Pattern>.size()> entries;
  ((entries[static_cast<std::size_t>(Each::pattern)] = entry_for<Each>()), ...);
  return entries;
}
constexpr auto entries = entries_of(GroupPatterns{});

const GroupEntry& entry_of(Pattern pattern) { return entries[static_cast<std::size_t>(pattern)]; }

}  // namespace

GroupParameters group_parameters(const PlanProbe& probe) {
  GroupParameters parameters;
  for (const ParameterFacts& parameter : facts_of(probe.pattern).parameters) {
    if (!parameter.words.empty()) continue;
    const std::string name(parameter.name);
    parameters[name] = whole_parameter(probe, name);
  }
  return parameters;
}

std::size_t flows_of(const GroupParameters& parameters) {
  const auto found = parameters.find("flows");
  return found == parameters.end() ? 1 : found->second;
}

std::size_t Group::parameter(const std::string& name) const {
  const auto found = parameters.find(name);
  if (found != parameters.end()) return found->second;
  return parameter_facts(pattern, name).usual;
}

std::vector<Link> Links::list() const {
  std::vector<Link> list;
  for (const auto& [key, link] : links_) list.push_back(link);
  return list;
}

void Links::add(std::size_t peer, std::size_t channel, bool Link::* direction) {
  for (std::size_t flow = channel * flows_; flow < (channel + 1) * flows_; ++flow) {
    Link& link = links_[{peer, flow}];
    link.peer = peer;
    link.flow = flow;
    link.*direction = true;
  }
}

std::vector<Link> links_of(Pattern pattern, std::size_t members, std::size_t member, const GroupParameters& parameters,
                           std::size_t round) {
  Links links(flows_of(parameters));
  if (const auto add = entry_of(pattern).links) add({pattern, members, member, parameters, round}, links);
  return links.list();
}

std::size_t rounds_of(Pattern pattern, std::size_t members, const GroupParameters& parameters) {
  if (const auto rounds = entry_of(pattern).rounds) return rounds({pattern, members, 0, parameters});
  if (facts_of(pattern).family == Family::matrix) return schedule_rounds(members);
  return 1;
}

std::size_t channels_of(Pattern pattern, std::size_t members, const GroupParameters& parameters) {
  const GroupEntry& entry = entry_of(pattern);
  if (entry.links == nullptr) return 1;
  if (entry.channels != nullptr) return entry.channels({pattern, members, 0, parameters});
  std::size_t channels = 0;
  for (std::size_t member = 0; member < members; ++member) {
    const std::vector<Link> links = links_of(pattern, members, member, parameters);
    channels += static_cast<std::size_t>(std::ranges::count_if(links, &Link::sends));
  }
  return channels;
}

std::vector<std::size_t> grid_sides(std::size_t members, std::size_t dimensions) {
  std::vector<std::size_t> sides(dimensions, 1);
  std::vector<std::size_t> primes;
  for (std::size_t factor = 2; members > 1; ++factor) {
    for (; members % factor == 0; members /= factor) primes.push_back(factor);
  }
  // The largest prime goes to the shortest side.
  for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime) *std::ranges::min_element(sides) *= *prime;
  std::ranges::sort(sides, std::greater());
  return sides;
}

std::size_t schedule_rounds(std::size_t members) { return members < 2 ? 0 : members - 1 + members % 2; }

std::optional<std::size_t> partner_in_round(std::size_t members, std::size_t member, std::size_t round) {
  // One seat stays, all others move on around a circle; with an odd number the seat that stays is empty.
  const std::size_t moving = schedule_rounds(members);
  const std::size_t fixed = moving;
  std::size_t partner = 0;
  if (member == fixed) {
    partner = round;
  } else {
    // Those who meet add up to twice the round, modulo the moving seats; who would meet itself meets the fixed seat.
    partner = (2 * round + moving - member) % moving;
    if (partner == member) partner = fixed;
  }
  if (partner >= members) return std::nullopt;
  return partner;
}

std::optional<Match> match_of(std::size_t members, std::size_t member, std::uint64_t seed, std::size_t round) {
  std::vector<std::uint32_t> order(members);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15U + round);
  // Fisher and Yates, with our own reduction: the standard library's shuffle differs between implementations.
  for (std::size_t i = members; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  const auto place = static_cast<std::size_t>(std::ranges::find(order, member) - order.begin());
  const std::size_t half = members / 2;
  if (place >= 2 * half) return std::nullopt;
  const bool sends = place < half;
  return Match{order[sends ? place + half : place - half], sends};
}

std::size_t PairSchedule::turns() const {
  if (members_ < 2) return 0;
  switch (way_) {
    case words::Schedule::alone:
      return members_ * (members_ - 1) / 2;
    case words::Schedule::rounds:
      return schedule_rounds(members_);
    case words::Schedule::halves:
      return 1;
  }
  return 0;
}

std::optional<std::size_t> PairSchedule::partner(std::size_t turn, std::size_t member) const {
  if (turn >= turns()) return std::nullopt;
  if (way_ == words::Schedule::rounds) return partner_in_round(members_, member, turn);
  if (way_ == words::Schedule::halves) {
    const std::size_t half = members_ / 2;
    if (member >= 2 * half) return std::nullopt;
    return member < half ? member + half : member - half;
  }
  const auto [one, other] = alone(turn);
  if (member == one) return other;
  if (member == other) return one;
  return std::nullopt;
}

std::vector<std::size_t> PairSchedule::busy(std::size_t turn) const {
  std::vector<std::size_t> all;
  if (turn >= turns()) return all;
  if (way_ == words::Schedule::alone) {
    const auto [one, other] = alone(turn);
    return {one, other};
  }
  for (std::size_t member = 0; member < members_; ++member) {
    if (partner(turn, member)) all.push_back(member);
  }
  return all;
}

PairSchedule::Pair PairSchedule::alone(std::size_t turn) const {
  // Member `one` meets all after it, one turn each, before the next member does.
  std::size_t one = 0;
  std::size_t after_one = members_ - 1;
  for (; turn >= after_one; --after_one) {
    turn -= after_one;
    ++one;
  }
  return {one, one + 1 + turn};
}

}  // namespace fabricbench
