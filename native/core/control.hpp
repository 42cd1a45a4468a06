// The control plane: how ranks agree over MPI while they measure over something else. Whoever waits here sleeps,
// because on a machine with more ranks than processors a spinning rank takes the time of those that measure. And
// whoever waits here, on whatever tag, hears that the launch has ended: any rank may stop at any point.
#pragma once

#include <mpi.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
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

/// The launch has ended on another rank: thrown in every wait of the control plane. what() is the cause.
class LaunchEnded : public std::runtime_error {
 public:
  LaunchEnded(int rank, int exit_code, const std::string& cause)
      : std::runtime_error(cause), rank_(rank), exit_code_(exit_code) {}
  int rank() const { return rank_; }
  int exit_code() const { return exit_code_; }

 private:
  int rank_;
  int exit_code_;
};

/// A rank said something that cannot be meant, or nothing for too long: the launch cannot go on.
class ControlError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A message of the control plane as the value that it must be. Throws ControlError where its size is another one.
template <class Value>
Value decode(std::string_view message) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (message.size() != sizeof(Value)) {
    throw ControlError("a message of " + std::to_string(message.size()) + " bytes came where " +
                       std::to_string(sizeof(Value)) +
                       " are needed: do all ranks run the same fabricbench-probe on the same kind of machine?");
  }
  Value value;
  std::memcpy(&value, message.data(), sizeof value);
  return value;
}

/// As many of them as a message holds, likewise.
template <class Value>
std::vector<Value> decode_all(std::string_view message) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (message.size() % sizeof(Value) != 0) {
    throw ControlError("a message of " + std::to_string(message.size()) + " bytes came where multiples of " +
                       std::to_string(sizeof(Value)) + " are needed");
  }
  std::vector<Value> values(message.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), message.data(), message.size());
  return values;
}

template <class Value>
std::string_view encode(const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// How long a message may be before it goes in parts: MPI counts in int, and what a rank that ends leaves unsent stays
/// in memory.
inline constexpr std::size_t largest_part_bytes = std::size_t{64} << 20U;

/// Messages between the ranks of a launch. Collective to make and to destroy.
///
/// A message is a number of full parts and a shorter last one, which may be empty, so that short messages cost one.
class Control {
 public:
  explicit Control(std::size_t part_bytes = largest_part_bytes);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Returns when the message is under way or the launch has ended; never throws, for destructors let others go.
  void send(int to, int tag, std::string_view message) const;
  /// The next message. Throws LaunchEnded, and ControlError once the other rank has been silent for the patience.
  std::string receive(int from, int tag) const;
  /// The next message, however long it takes: an order, from who waits for others. Throws LaunchEnded.
  std::string receive_patiently(int from, int tag) const;
  /// The next message if one has come, without waiting for it. Throws LaunchEnded.
  std::optional<std::string> try_receive(int from, int tag) const;
  /// Sleep until a request of any communicator is complete. `buffers` is what it reads and writes: it stays where MPI
  /// still owns it when the wait ends without. Throws LaunchEnded, and ControlError, which says what was waited for,
  /// once that has taken longer than the patience.
  void finish(MPI_Request request, std::shared_ptr<const void> buffers, std::string_view awaited) const;
  /// How long a rank may keep receive() and finish() waiting; nothing: for ever.
  void set_patience(std::optional<double> seconds) { patience_seconds_ = seconds; }

  /// End the launch on all ranks, whatever they wait for on the control plane, and wait until they have heard.
  /// Those that have not after some seconds (in a call of MPI or the kernel, or stopped) are ended with this process by
  /// MPI_Abort; and so are all where some rank has requests left that never end. Where several ranks end it at once,
  /// the lowest decides when all have heard; where it has ended already, this confirms that.
  void end_all(int exit_code, std::string_view cause);
  /// Tell the rank that ended the launch, and any other that does, that this one has heard it, and wait until it lets
  /// go, some seconds at most: who left at once could not answer the others.
  void confirm(const LaunchEnded& ended) const;

  /// Rank 0's text on all ranks. Collective.
  std::string broadcast(std::string text) const;
  /// Each rank's text, on rank 0 only. Collective.
  std::vector<std::string> gather(std::string_view text) const;

 private:
  std::optional<std::string> take_part(int from, int tag) const;
  /// A short text that has come from a rank or MPI_ANY_SOURCE, and from whom; nothing where none has.
  struct Told {
    int from;
    std::string text;
  };
  std::optional<Told> take_short(int from, int tag) const;
  /// Whether some rank has ended the launch; look_for_end() throws LaunchEnded then.
  bool has_ended() const;
  void look_for_end() const;
  /// Send a short text that nothing waits for.
  void tell(int to, int tag, std::string_view text) const;
  /// Whether this rank was let go in time; until then it answers who ends the launch as well.
  bool is_let_go(double within_seconds) const;
  /// Sleep until the request is complete; false once the launch has ended or the patience is over.
  bool is_finished(MPI_Request& request, std::optional<double> patience_seconds) const;
  /// Sleep until the request is complete, or set it aside with its text once the launch has ended.
  void finish_or_set_aside(MPI_Request request, std::shared_ptr<std::string> text) const;
  std::string wait_for(int from, int tag, std::optional<double> patience_seconds) const;

  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::size_t part_bytes_;
  int rank_ = 0;
  int size_ = 1;
  std::optional<double> patience_seconds_;
  mutable std::optional<LaunchEnded> ended_;
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

  /// A text to one other member and from one, apart from the pattern's own messages. Not for patterns: what one rank of
  /// a failed pattern left here would be taken for what the ranks agree on next.
  void send_text(std::size_t to, std::string_view text) const { control_.send(ranks_[to], agreement_tag_, text); }
  std::string receive_text(std::size_t from) const { return control_.receive(ranks_[from], agreement_tag_); }
  /// From who has others to wait for first.
  std::string receive_text_patiently(std::size_t from) const {
    return control_.receive_patiently(ranks_[from], agreement_tag_);
  }

  /// A pattern's own messages. Those that it leaves are discarded, so that it may stop at any point.
  template <class Value>
  void send(std::size_t to, const Value& value) const {
    control_.send(ranks_[to], pattern_tag_, encode(value));
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
  template <class Value>
  void send_all(std::size_t to, const std::vector<Value>& values) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    control_.send(ranks_[to], pattern_tag_,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)});
  }
  template <class Value>
  std::vector<Value> receive_all(std::size_t from) const {
    return decode_all<Value>(control_.receive(ranks_[from], pattern_tag_));
  }

 private:
  const Control& control_;
  std::vector<int> ranks_;
  std::size_t member_ = 0;
  int pattern_tag_ = 0;
  int agreement_tag_ = 0;
};

}  // namespace fabricbench
