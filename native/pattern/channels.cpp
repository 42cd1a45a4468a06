#include "pattern/channels.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "pattern/parameters.hpp"

namespace fabricbench {
namespace {

/// Collects a member's links: sending and receiving over one path where both ends agree on its flow.
class Links {
 public:
  explicit Links(std::size_t flows) : flows_(flows) {}

  /// All flows of a channel to a peer.
  void send_to(std::size_t peer, std::size_t first_flow = 0) { add(peer, first_flow, &Link::sends); }
  void receive_from(std::size_t peer, std::size_t first_flow = 0) { add(peer, first_flow, &Link::receives); }

  std::vector<Link> list() const {
    std::vector<Link> list;
    for (const auto& [key, link] : links_) list.push_back(link);
    return list;
  }

 private:
  void add(std::size_t peer, std::size_t first_flow, bool Link::* direction) {
    for (std::size_t i = 0; i < flows_; ++i) {
      Link& link = links_[{peer, first_flow + i}];
      link.peer = peer;
      link.flow = first_flow + i;
      link.*direction = true;
    }
  }

  std::size_t flows_;
  std::map<std::pair<std::size_t, std::size_t>, Link> links_;
};

/// Both neighbours along one axis of a periodic grid. Channels up the axis and down it are different ones even where
/// both neighbours are the same member, so those down take the next flow.
void add_axis(Links& links, std::size_t up, std::size_t down, std::size_t axis) {
  const std::size_t flow_up = 2 * axis;
  const std::size_t flow_down = 2 * axis + 1;
  links.send_to(up, flow_up);
  links.receive_from(down, flow_up);
  links.send_to(down, flow_down);
  links.receive_from(up, flow_down);
}

void add_halo(Links& links, std::size_t members, std::size_t member, std::size_t dimensions) {
  std::size_t stride = 1;
  std::size_t axis = 0;
  for (const std::size_t side : grid_sides(members, dimensions)) {
    const std::size_t place = member / stride % side;
    const auto moved = [&](std::size_t to) { return member + to * stride - place * stride; };
    if (side > 1) add_axis(links, moved((place + 1) % side), moved((place + side - 1) % side), axis);
    stride *= side;
    ++axis;
  }
}

void add_all_others(std::size_t members, std::size_t member, const auto& add) {
  for (std::size_t other = 0; other < members; ++other) {
    if (other != member) add(other);
  }
}

}  // namespace

GroupParameters group_parameters(const PlanProbe& probe) {
  constexpr std::size_t most_flows = 256;
  constexpr std::size_t most_matchings = 1000;
  return {.flows = whole_parameter(probe, "flows", 1, 1, most_flows),
          .dimensions = whole_parameter(probe, "dimensions", 2, 2, 3),
          .matchings = whole_parameter(probe, "matchings", 8, 1, most_matchings),
          .seed = whole_parameter(probe, "seed", 1, 0, 0x7fffffff)};
}

std::vector<Link> links_of(Pattern pattern, std::size_t members, std::size_t member, const GroupParameters& parameters,
                           std::size_t round) {
  Links links(parameters.flows);
  const std::size_t right = (member + 1) % members;
  const std::size_t left = (member + members - 1) % members;
  const bool is_centre = member == 0;
  const auto both_ways = [&](std::size_t other) {
    links.send_to(other);
    links.receive_from(other);
  };
  switch (pattern) {
    case Pattern::pingping:
    case Pattern::bistream:
      both_ways(1 - member);
      break;
    case Pattern::sendrecv:
    case Pattern::ring:
      links.send_to(right);
      links.receive_from(left);
      break;
    case Pattern::exchange:
      add_axis(links, right, left, 0);
      break;
    case Pattern::halo:
      add_halo(links, members, member, parameters.dimensions);
      break;
    case Pattern::star:
      if (is_centre) {
        add_all_others(members, member, both_ways);
      } else {
        both_ways(0);
      }
      break;
    case Pattern::chaos:
      add_all_others(members, member, both_ways);
      break;
    case Pattern::incast:
      if (is_centre) {
        add_all_others(members, member, [&](std::size_t other) { links.receive_from(other); });
      } else {
        links.send_to(0);
      }
      break;
    case Pattern::outcast:
      if (is_centre) {
        add_all_others(members, member, [&](std::size_t other) { links.send_to(other); });
      } else {
        links.receive_from(0);
      }
      break;
    case Pattern::message_rate: {
      const std::size_t half = members / 2;
      if (member < half) links.send_to(member + half);
      if (member >= half && member < 2 * half) links.receive_from(member - half);
      break;
    }
    case Pattern::bisection:
      if (const auto match = match_of(members, member, parameters.seed, round)) {
        if (match->sends) {
          links.send_to(match->partner);
        } else {
          links.receive_from(match->partner);
        }
      }
      break;
    default:
      break;
  }
  return links.list();
}

std::size_t rounds_of(Pattern pattern, std::size_t members, const GroupParameters& parameters) {
  if (pattern == Pattern::bisection) return parameters.matchings;
  if (facts_of(pattern).family == Family::matrix) return schedule_rounds(members);
  return 1;
}

std::size_t channels_of(Pattern pattern, std::size_t members, const GroupParameters& parameters) {
  const std::size_t others = members - 1;
  switch (pattern) {
    case Pattern::pingping:
    case Pattern::bistream:
      return 2 * parameters.flows;
    case Pattern::sendrecv:
    case Pattern::ring:
      return members * parameters.flows;
    case Pattern::exchange:
      return 2 * members;
    case Pattern::halo: {
      const std::vector<std::size_t> sides = grid_sides(members, parameters.dimensions);
      return 2 * members * static_cast<std::size_t>(std::ranges::count_if(sides, [](auto side) { return side > 1; }));
    }
    case Pattern::star:
      return 2 * others * parameters.flows;
    case Pattern::chaos:
      return members * others * parameters.flows;
    case Pattern::incast:
    case Pattern::outcast:
      return others * parameters.flows;
    case Pattern::message_rate:
    case Pattern::bisection:
      return members / 2 * parameters.flows;
    default:
      return 1;
  }
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

}  // namespace fabricbench
