#include "core/channel.hpp"

namespace fabricbench {
namespace {

// Each cell has two tags of its own, after that of the launch; after so many the first come in turn again. MPI
// guarantees tags up to 32767.
constexpr int cells_with_own_tags = 16000;

int first_tag_of(int cell_ordinal) { return launch_tag + 1 + 2 * (cell_ordinal % cells_with_own_tags); }

}  // namespace

void Channel::discard_all() const {
  while (const std::optional<int> from = control_->who_has_sent(tag_)) control_->try_receive(*from, tag_);
}

bool Channel::is_on_all(bool own) const {
  const CellTree tree(*this, RankList::first(size()));
  const auto join = [](Whether one, Whether other) { return Whether{.holds = one.holds && other.holds}; };
  return broadcast(tree.collect(Whether{.holds = own}, join)).holds;
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

CellTree::CellTree(const Channel& channel, RankList ranks)
    : channel_(channel),
      ranks_(std::move(ranks)),
      first_(ranks_.place_of(0).value_or(ranks_.size())),
      size_(ranks_.size() + (first_ == ranks_.size() ? 1 : 0)),
      place_(size_, place_at(channel.rank())) {}

std::vector<int> CellTree::below() const {
  std::vector<int> ranks;
  for (const Branch& branch : place_.branches()) ranks.push_back(rank_at(branch.root));
  return ranks;
}

// Rank 0 is the root; who stands before it among the ranks moves back by one.
int CellTree::rank_at(std::size_t place) const {
  if (place == 0) return 0;
  return ranks_[place <= first_ ? place - 1 : place];
}

std::size_t CellTree::place_at(int rank) const {
  if (rank == 0) return 0;
  const std::optional<std::size_t> place = ranks_.place_of(rank);
  if (!place) throw ControlError("rank " + std::to_string(rank) + " was told what is for others");
  return *place < first_ ? *place + 1 : *place;
}

CellTeam::CellTeam(const Control& control, RankList ranks, int cell_ordinal)
    : pattern_(control, first_tag_of(cell_ordinal)),
      agreement_(control, first_tag_of(cell_ordinal) + 1),
      ranks_(std::move(ranks)),
      member_(place_of(control.rank())) {}

CellTeam CellTeam::some(const std::vector<std::size_t>& members) const {
  CellTeam team(*this);
  team.ranks_ = {};
  for (const std::size_t member : members) team.ranks_.push_back(ranks_[member]);
  team.member_ = team.place_of(control().rank());
  return team;
}

std::vector<std::size_t> CellTeam::children() const {
  std::vector<std::size_t> below;
  if (!is_binary()) {
    for (const Branch& branch : order_place().branches()) below.push_back(branch.root);
    return below;
  }
  for (const std::size_t child : {2 * member_ + 1, 2 * member_ + 2}) {
    if (child < ranks_.size()) below.push_back(child);
  }
  return below;
}

}  // namespace fabricbench
