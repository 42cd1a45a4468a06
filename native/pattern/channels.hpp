// Who sends to whom in patterns of many ranks: pure functions of the number of members, from which each member takes
// only what concerns itself, so that no rank holds more than its own neighbours. Members count from 0 in the order of
// the plan's ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan.hpp"

namespace fabricbench {

/// This member's side of a path to a peer. A path carries one flow and may be used both ways; between two members flows
/// are counted from 0, and `flow` names the same path on both sides.
struct Link {
  std::size_t peer = 0;
  std::size_t flow = 0;
  bool sends = false;
  bool receives = false;

  friend bool operator==(const Link&, const Link&) = default;
};

/// A link with the transport that it runs over; `sequence` is of the next message on this path, on unreliable layers.
template <class T>
struct LinkOver {
  Link link;
  T* path = nullptr;
  std::uint32_t token = 0;
  std::uint32_t* sequence = nullptr;
  int peer_rank = 0;  // in the launch
};

/// The parameters of patterns with many ranks, read from the plan. Throws a Failure that names a wrong one.
struct GroupParameters {
  std::size_t flows = 1;
  std::size_t dimensions = 2;
  std::size_t matchings = 8;
  std::uint64_t seed = 1;
};
GroupParameters group_parameters(const PlanProbe& probe);

/// The paths of a member, ordered by peer and flow. Patterns that change partners (bisection, pairs) have one list for
/// each round.
std::vector<Link> links_of(Pattern pattern, std::size_t members, std::size_t member, const GroupParameters& parameters,
                           std::size_t round = 0);

/// How many rounds there are: 1, but for patterns that change partners.
std::size_t rounds_of(Pattern pattern, std::size_t members, const GroupParameters& parameters);

/// Logical channels in use at once, over all members.
std::size_t channels_of(Pattern pattern, std::size_t members, const GroupParameters& parameters);

/// The sides of a grid of `members` points, as equal as can be, largest first; their product is `members`.
std::vector<std::size_t> grid_sides(std::size_t members, std::size_t dimensions);

/// The partner of a member in a round of the circle method (Kirkman 1847): in rounds 0 .. schedule_rounds(members) - 1
/// every two members meet once. Nothing where the member rests, which happens when their number is odd.
std::optional<std::size_t> partner_in_round(std::size_t members, std::size_t member, std::size_t round);
std::size_t schedule_rounds(std::size_t members);

/// The partner of a member in a random matching: a permutation of the members drawn from the seed and the round, halves
/// of it facing each other; `sends` on the first half. Nothing where an odd one is left over. Needs memory for all
/// members' numbers.
struct Match {
  std::size_t partner = 0;
  bool sends = false;
};
std::optional<Match> match_of(std::size_t members, std::size_t member, std::uint64_t seed, std::size_t round);

}  // namespace fabricbench
