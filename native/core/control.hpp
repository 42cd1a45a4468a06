// The control plane: how ranks agree over MPI while they measure over something else. Whoever waits here sleeps,
// because on a machine with more ranks than processors a spinning rank takes the time of those that measure.
#pragma once

#include <mpi.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fabricbench {

/// Sleeps between two looks: short at first, an eighth of the waiting so far later on, so that waiting stays prompt and
/// cheap.
class Pause {
 public:
  void sleep();

 private:
  double waited_seconds_ = 0;
};

/// Messages between the ranks of a launch. Collective to make and to destroy.
class Control {
 public:
  Control();
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  void send(int to, int tag, std::string_view message) const;
  std::string receive(int from, int tag) const;
  /// The next message if one has come, without waiting for it.
  std::optional<std::string> try_receive(int from, int tag) const;

  /// Rank 0's text on all ranks. Collective.
  std::string broadcast(std::string text) const;
  /// Each rank's text, on rank 0 only. Collective.
  std::vector<std::string> gather(std::string_view text) const;

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

/// The ranks of one cell. Its messages carry the cell's tag, so that what a failed cell left behind disturbs no later
/// one.
class CellTeam {
 public:
  CellTeam(const Control& control, std::vector<int> ranks, int cell_ordinal);

  const Control& control() const { return control_; }
  const std::vector<int>& world_ranks() const { return ranks_; }
  /// Some of the members as a team of their own, in the order given. Only they call it.
  CellTeam some(const std::vector<std::size_t>& members) const;
  std::size_t size() const { return ranks_.size(); }
  std::size_t member() const { return member_; }
  int world_rank(std::size_t member) const { return ranks_[member]; }

  /// One text for all members: each joins its own with those of the members below it in a binary tree, and the first
  /// member's result goes back down. No member holds more than three texts. Collective over the members.
  std::string converge(std::string own, const std::function<std::string(std::string, std::string)>& join) const;
  /// The first member's text on every member. Collective.
  std::string broadcast(std::string text) const;

  /// Take what the other members sent to a pattern that is over. To be called after the members have
  /// converged: all of it has come then.
  void discard_leftovers() const;

  /// A text to one other member and from one, apart from the pattern's own messages.
  void send_text(std::size_t to, std::string_view text) const { control_.send(ranks_[to], agreement_tag_, text); }
  std::string receive_text(std::size_t from) const { return control_.receive(ranks_[from], agreement_tag_); }

  template <class Value>
  void send(std::size_t to, const Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    control_.send(ranks_[to], pattern_tag_, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  template <class Value>
  Value receive(std::size_t from) const {
    return decode<Value>(control_.receive(ranks_[from], pattern_tag_));
  }
  template <class Value>
  std::optional<Value> try_receive(std::size_t from) const {
    const auto message = control_.try_receive(ranks_[from], pattern_tag_);
    return message ? std::optional<Value>(decode<Value>(*message)) : std::nullopt;
  }

 private:
  template <class Value>
  static Value decode(const std::string& message) {
    Value value{};
    std::memcpy(&value, message.data(), std::min(sizeof value, message.size()));
    return value;
  }

  const Control& control_;
  std::vector<int> ranks_;
  std::size_t member_ = 0;
  int pattern_tag_ = 0;
  int agreement_tag_ = 0;
};

}  // namespace fabricbench
