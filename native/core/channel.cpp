#include "core/channel.hpp"

#include <algorithm>

namespace fabricbench {
namespace {

// Each cell has two tags of its own, after that of the launch; after so many the first come in turn again. MPI
// guarantees tags up to 32767.
constexpr int cells_with_own_tags = 16000;

int first_tag_of(int cell_ordinal) { return launch_tag + 1 + 2 * (cell_ordinal % cells_with_own_tags); }

}  // namespace

void Channel::discard(int from) const {
  while (control_->try_receive(from, tag_)) {
  }
}

Envelope Channel::opened(int from, std::string_view bytes) const {
  try {
    return open_envelope(bytes);
  } catch (const ControlError& error) {
    damaged(from, error);
  }
}

void Channel::damaged(int from, const ControlError& error) const {
  throw ControlError("rank " + std::to_string(rank()) + " cannot read what rank " + std::to_string(from) +
                     " sent: " + error.what());
}

void Channel::refuse(int from, const Envelope& envelope, std::span<const MessageType> awaited) const {
  std::string names;
  for (const MessageType type : awaited) names += (names.empty() ? "\"" : " or \"") + std::string(name_of(type)) + "\"";
  throw ControlError("rank " + std::to_string(rank()) + " awaited " + names + " from rank " + std::to_string(from) +
                     ", which sent \"" + std::string(name_of(envelope.type)) + "\" (" +
                     std::to_string(envelope.payload.size()) +
                     " bytes): they are not at the same point of the plan, which is a fault of fabricbench-probe");
}

CellTeam::CellTeam(const Control& control, std::vector<int> ranks, int cell_ordinal)
    : pattern_(control, first_tag_of(cell_ordinal)),
      agreement_(control, first_tag_of(cell_ordinal) + 1),
      ranks_(std::move(ranks)),
      member_(place_of(control.rank())) {}

CellTeam CellTeam::some(const std::vector<std::size_t>& members) const {
  CellTeam team(*this);
  team.ranks_.clear();
  for (const std::size_t member : members) team.ranks_.push_back(ranks_[member]);
  team.member_ = team.place_of(control().rank());
  return team;
}

void CellTeam::discard_leftovers() const {
  for (std::size_t from = 0; from < ranks_.size(); ++from) {
    if (from != member_) pattern_.discard(ranks_[from]);
  }
}

std::vector<std::size_t> CellTeam::children() const {
  std::vector<std::size_t> below;
  for (const std::size_t child : {2 * member_ + 1, 2 * member_ + 2}) {
    if (child < ranks_.size()) below.push_back(child);
  }
  return below;
}

std::size_t CellTeam::place_of(int rank) const {
  return static_cast<std::size_t>(std::ranges::find(ranks_, rank) - ranks_.begin());
}

}  // namespace fabricbench
