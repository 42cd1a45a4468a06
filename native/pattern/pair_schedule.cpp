#include "pattern/pair_schedule.hpp"

#include "pattern/channels.hpp"

namespace fabricbench {

std::size_t PairSchedule::turns() const {
  if (members_ < 2) return 0;
  return is_in_rounds_ ? schedule_rounds(members_) : members_ * (members_ - 1) / 2;
}

std::optional<std::size_t> PairSchedule::partner(std::size_t turn, std::size_t member) const {
  if (turn >= turns()) return std::nullopt;
  if (is_in_rounds_) return partner_in_round(members_, member, turn);
  const auto [one, other] = alone(turn);
  if (member == one) return other;
  if (member == other) return one;
  return std::nullopt;
}

std::vector<std::size_t> PairSchedule::busy(std::size_t turn) const {
  std::vector<std::size_t> all;
  if (turn >= turns()) return all;
  if (!is_in_rounds_) {
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
