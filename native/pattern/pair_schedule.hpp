// When each pair of a matrix has its turn: pure arithmetic on the members' numbers, so that every rank finds its own
// partner from the number of the turn alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/message.hpp"

namespace fabricbench {

/// What the first member of a matrix says to the others: whose pair is in this turn measures it now; or that all have
/// been. Each answers when its pair is done.
struct Turn {
  static constexpr MessageType message_type = MessageType::turn;
  std::uint32_t number = 0;
};
using TurnDone = Signal<MessageType::turn_done>;
using TurnsOver = Signal<MessageType::turns_over>;

/// Every two members meet in exactly one turn. Either a turn is one pair alone, in the order of their numbers; or it is
/// a round of disjoint pairs, as many at once as there can be (channels.hpp, partner_in_round).
class PairSchedule {
 public:
  PairSchedule(std::size_t members, bool is_in_rounds) : members_(members), is_in_rounds_(is_in_rounds) {}

  std::size_t turns() const;
  /// Who a member meets in a turn; nothing where it rests. Takes O(1) in rounds, O(members) alone.
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
  bool is_in_rounds_;
};

}  // namespace fabricbench
