// Who sends to whom in patterns of many ranks: pure functions of a member's number, from which each member takes only
// what concerns itself, so that no rank holds more than its own neighbours. Members count from 0 in the order of the
// plan's ranks. At the end, when each pair of a matrix has its turn.
//
// Such a pattern is a type (pattern/groups.hpp has those that need no file of their own) with
//
//   links(group, links)   what a member sends and receives: links.send_to(peer), links.receive_from(peer)
//
// and, where it needs them,
//
//   rounds(group)         how many rounds there are, each measured by itself with links of its own (group.round); of
//                         those that fill their channels
//   channels(group)       logical channels in use at once, where counting what all members send takes long
//
// Whether its members take turns or fill their channels is its family in the table: pattern/lockstep.hpp, flood.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/message.hpp"
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

/// What a plan says of a pattern of many ranks, by name; what it leaves out is as the table has it.
using GroupParameters = std::map<std::string, std::size_t>;

/// Those of a probe. Throws a Failure that names a wrong one.
GroupParameters group_parameters(const PlanProbe& probe);

/// Parallel flows in each channel: 1 for patterns that have no such parameter.
std::size_t flows_of(const GroupParameters& parameters);

/// A member among those of a pattern.
struct Group {
  Pattern pattern;
  std::size_t members;
  std::size_t member;
  const GroupParameters& parameters;
  std::size_t round = 0;

  std::size_t right() const { return (member + 1) % members; }
  std::size_t left() const { return (member + members - 1) % members; }
  /// A parameter that the table has for the pattern.
  std::size_t parameter(const std::string& name) const;
};

/// Collects a member's links: sending and receiving over one path where both ends agree on its flow.
class Links {
 public:
  explicit Links(std::size_t flows) : flows_(flows) {}

  /// A channel to a peer, or from it, with all its flows. Where two members have several channels one way, they are
  /// counted by `channel` from 0, the same on both sides.
  void send_to(std::size_t peer, std::size_t channel = 0) { add(peer, channel, &Link::sends); }
  void receive_from(std::size_t peer, std::size_t channel = 0) { add(peer, channel, &Link::receives); }
  void exchange_with(std::size_t peer) {
    send_to(peer);
    receive_from(peer);
  }

  /// By peer and flow.
  std::vector<Link> list() const;

 private:
  void add(std::size_t peer, std::size_t channel, bool Link::* direction);

  std::size_t flows_;
  std::map<std::pair<std::size_t, std::size_t>, Link> links_;
};

/// The paths of a member, ordered by peer and flow. Patterns that change partners have one list for each round.
std::vector<Link> links_of(Pattern pattern, std::size_t members, std::size_t member, const GroupParameters& parameters,
                           std::size_t round = 0);

/// How many rounds there are: 1, but for patterns that change partners.
std::size_t rounds_of(Pattern pattern, std::size_t members, const GroupParameters& parameters);

/// Logical channels in use at once, over all members: in the first round where there are several.
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

/// What the first member of a matrix says to the others: whose pair is in this turn measures it now; or that all have
/// been. Each answers when its pair is done.
struct Turn {
  static constexpr MessageType message_type = MessageType::turn;
  std::uint32_t number = 0;
};
using TurnDone = Signal<MessageType::turn_done>;
using TurnsOver = Signal<MessageType::turns_over>;

/// When each pair of a matrix has its turn: pure arithmetic on the members' numbers, so that every rank finds its own
/// partner from the number of the turn alone. Either a turn is one pair alone, in the order of their numbers; or it is
/// a round of disjoint pairs, as many at once as there can be (partner_in_round): every two members meet in exactly one
/// turn. Or there is one turn, in which each member of the first half meets its counterpart of the second; an odd one
/// is left over.
class PairSchedule {
 public:
  PairSchedule(std::size_t members, words::Schedule way) : members_(members), way_(way) {}

  std::size_t turns() const;
  /// Who a member meets in a turn; nothing where it rests. Takes O(members) where pairs are alone, O(1) else.
  std::optional<std::size_t> partner(std::size_t turn, std::size_t member) const;
  /// All who meet somebody in a turn, in their order. Takes O(members).
  std::vector<std::size_t> busy(std::size_t turn) const;

 private:
  struct Pair {
    std::size_t one;
    std::size_t other;
  };
  Pair alone(std::size_t turn) const;

  std::size_t members_;
  words::Schedule way_;
};

}  // namespace fabricbench
