// The control plane: how ranks reach each other over MPI while they measure over something else. It carries bytes and
// knows who waits for whom; what they mean is core/channel.hpp's. Whoever waits here sleeps, because on a machine with
// more ranks than processors a spinning rank takes the time of those that measure. And whoever waits here, on whatever
// tag, hears that the launch has ended: any rank may stop at any point.
#pragma once

#include <mpi.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/control_transport.hpp"
#include "core/message.hpp"
#include "core/tree.hpp"

namespace fabricbench {

/// Sleeps between two looks: short at first, an eighth of the waiting so far later on, so that waiting stays prompt and
/// cheap.
class Pause {
 public:
  void sleep();
  /// How long the next sleep is, which counts as slept.
  double next_seconds();

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

  /// What had failed on this rank before, where the cause does not say it.
  const std::optional<std::string>& failure_here() const { return failure_here_; }
  void set_failure_here(std::string failure) { failure_here_ = std::move(failure); }

 private:
  int rank_;
  int exit_code_;
  std::optional<std::string> failure_here_;
};

/// What the ranks say to one another when a launch ends, down the tree whose root ends it.
struct EndNotice {
  static constexpr MessageType message_type = MessageType::end;
  std::int32_t ender = 0;
  std::int32_t exit_code = 0;
  std::string cause;

  std::string pack() const { return pack_numbered(ender, pack_numbered(exit_code, cause)); }
  static EndNotice unpack(std::string_view payload);
};
/// Up the same tree, of a rank and all below it; `is_clean` unless there is left what MPI owns.
struct EndHeard {
  static constexpr MessageType message_type = MessageType::heard;
  std::int32_t ender = 0;
  std::int32_t lowest_ender = 0;  // of those that are known there
  bool is_clean = false;
};
/// And down again: all have heard.
struct EndOver {
  static constexpr MessageType message_type = MessageType::over;
  std::int32_t ender = 0;
};

/// To a rank that is silent; answered in every wait of the control plane.
using Asked = Signal<MessageType::asked>;
using Waits = Signal<MessageType::waits>;

/// How long a message may be before it goes in parts: MPI counts in int, and what a rank that ends leaves unsent stays
/// in memory.
inline constexpr std::size_t largest_part_bytes = std::size_t{64} << 20U;

/// The tag of what rank 0 and the others say to each other.
inline constexpr int launch_tag = 0;
/// Of what is heard in every wait: the largest that MPI guarantees, above all others.
inline constexpr int end_tag = 32767;

/// What ranks say of themselves, one after the other, on its way to rank 0.
struct Gathered {
  static constexpr MessageType message_type = MessageType::gathered;
  std::vector<std::string> all;

  std::string pack() const;
  static Gathered unpack(std::string_view payload);
};

/// Bytes between the ranks of a launch. Collective to make.
///
/// A message is a number of full parts and a shorter last one, which may be empty, so that short messages cost one.
class Control {
 public:
  explicit Control(std::size_t part_bytes = largest_part_bytes) : Control(mpi_control_transport(), part_bytes) {}
  explicit Control(std::unique_ptr<ControlTransport> transport, std::size_t part_bytes = largest_part_bytes);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Returns when the message is under way or the launch has ended; never throws, for destructors let others go.
  void send(int to, int tag, std::string_view message) const;
  /// The next message. Throws LaunchEnded, and ControlError once the other rank has been silent for the patience. It is
  /// asked then, and one that answers waits in vain as well: it knows better for whom, and is left some more time to
  /// say it.
  std::string receive(int from, int tag) const;
  /// The next message, however long it takes: an order, from who waits for others. Throws LaunchEnded.
  std::string receive_patiently(int from, int tag) const;
  /// The next message of any rank, and which, however long it takes. Throws LaunchEnded.
  std::pair<int, std::string> receive_of_any(int tag) const;
  /// The next message if one has come, without waiting for it. Throws LaunchEnded.
  std::optional<std::string> try_receive(int from, int tag) const;
  /// Of whom a message has come that nobody has taken yet; nothing where none has. Throws LaunchEnded.
  std::optional<int> who_has_sent(int tag) const;
  /// Sleep until a request of any communicator is complete. `buffers` is what it reads and writes: it stays where MPI
  /// still owns it when the wait ends without. Throws LaunchEnded, and ControlError, which says what was waited for,
  /// once that has taken longer than the patience.
  void finish(MPI_Request request, std::shared_ptr<const void> buffers, std::string_view awaited) const;
  /// How long a rank may keep receive() and finish() waiting; nothing: for ever.
  void set_patience(std::optional<double> seconds) { patience_seconds_ = seconds; }

  /// End the launch on all ranks, whatever they wait for on the control plane, and wait until they have heard, each
  /// from the one above it in the tree whose root is this rank.
  /// Where one has not after some seconds (in a call of MPI or the kernel, or stopped), all are ended with this process
  /// by MPI_Abort; and so are all where some rank has requests left that never end. Where several ranks end it at once,
  /// the lowest decides when all have heard; where it has ended already, this confirms that.
  void end_all(int exit_code, std::string_view cause);
  /// Tell the rank that ended the launch, and any other that does, that this one and those below it have heard it, and
  /// wait until it lets go, some seconds at most: who left at once could not answer the others.
  void confirm(const LaunchEnded& ended) const;

  /// Rank 0's bytes on all ranks, passed on along the tree. Collective.
  std::string broadcast(std::string bytes, int tag = launch_tag) const;
  /// Each rank's bytes, on rank 0 only. Collective.
  std::vector<std::string> gather(std::string_view bytes, int tag = launch_tag) const;

 private:
  std::optional<std::string> take_part(int from, int tag) const;
  /// What has come for whoever waits, and from whom; nothing where nothing has. Never throws: what cannot be understood
  /// ends the launch.
  struct Told {
    int from;
    std::variant<EndNotice, EndHeard, EndOver, Asked, Waits> message;
  };
  std::optional<Told> take_told() const;
  /// Whether some rank has ended the launch; look_for_end() throws LaunchEnded then. Both answer who asks.
  bool has_ended() const;
  void look_for_end() const;
  /// Say something for whose arrival nobody waits.
  template <Message M>
  void tell(int to, const M& message) const;
  /// This rank's place in the tree whose root a rank is, and the rank of a member of it.
  TreePlace place_below(int root) const;
  int rank_below(int root, std::size_t member) const;
  /// Pass on that a rank ends the launch, once.
  void pass_on(const EndNotice& end) const;
  void pass_on(const EndOver& over) const;
  /// Answer those who end the launch and of whose news all below have heard.
  void tell_heard() const;
  /// The lowest of all ranks that are known to end the launch.
  int lowest_ender() const;
  /// Take in what is told of the end; whether this rank is released.
  bool is_over() const;
  /// How long who ends the launch waits until all have heard.
  double hearing_seconds() const;
  /// Whether this rank was released in time; until then it answers who ends the launch as well.
  bool is_released(double within_seconds) const;
  /// Sleep until the request is complete; false once the launch has ended or the patience is over.
  bool is_finished(MPI_Request& request, std::optional<double> patience_seconds) const;
  /// Sleep until the request is complete, or set it aside with its text once the launch has ended.
  void finish_or_set_aside(MPI_Request request, std::shared_ptr<std::string> text) const;
  std::string wait_for(int from, int tag, std::optional<double> patience_seconds) const;
  double seconds_since(std::uint64_t begin_ns) const;
  class PeerTimeout;
  friend class PeerTimeout;

  /// How far the news that a rank ends the launch has come.
  struct Ending {
    std::vector<int> silent;  // of those directly below in its tree
    bool is_clean = true;
    bool is_told = false;  // that all below have heard
  };

  std::unique_ptr<ControlTransport> transport_;
  std::size_t part_bytes_;
  int rank_ = 0;
  int size_ = 1;
  std::optional<double> patience_seconds_;
  mutable std::optional<LaunchEnded> ended_;
  mutable std::map<int, Ending> endings_;  // by who ends
  mutable int lowest_ender_;               // of those that others know
  mutable std::optional<int> answered_;    // by whom, since this rank asked last
};

}  // namespace fabricbench
