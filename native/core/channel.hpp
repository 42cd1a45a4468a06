// Typed messages between the ranks of a launch, on top of the control plane. A channel is one tag: MPI keeps the order
// of messages within it, and who awaits a message says of which type. Another one is a protocol error that names both
// types and ranks. What the types are, core/message.hpp lists.
//
// A launch has one channel, and each cell two of its own (CellTeam): one on which its ranks agree and one for its
// pattern, which may stop at any point and leave messages behind.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/control.hpp"
#include "core/message.hpp"

namespace fabricbench {

/// What may come: the message, or where several types may, a variant of them.
template <Message First, Message... Others>
struct OneOf {
  using type = std::variant<First, Others...>;
};
template <Message Only>
struct OneOf<Only> {
  using type = Only;
};
template <Message... Awaited>
using Received = typename OneOf<Awaited...>::type;

class Channel {
 public:
  /// That of the launch, unless the tag says otherwise.
  explicit Channel(const Control& control, int tag = launch_tag) : control_(&control), tag_(tag) {}

  const Control& control() const { return *control_; }
  int rank() const { return control_->rank(); }
  int size() const { return control_->size(); }

  /// As Control::send: returns when it is under way or the launch has ended, and never throws.
  template <Message M>
  void send(int to, const M& message) const {
    control_->send(to, tag_, encode(message));
  }

  /// The next message, of one of these types. Throws LaunchEnded; ControlError where it is of another type or cannot be
  /// read, and once the other rank has been silent for the patience.
  template <Message... Awaited>
  Received<Awaited...> receive(int from) const {
    return take<Awaited...>(from, control_->receive(from, tag_));
  }
  /// The same however long it takes: an order, from who waits for others.
  template <Message... Awaited>
  Received<Awaited...> receive_patiently(int from) const {
    return take<Awaited...>(from, control_->receive_patiently(from, tag_));
  }
  /// The same if one has come, without waiting for it.
  template <Message... Awaited>
  std::optional<Received<Awaited...>> try_receive(int from) const {
    const std::optional<std::string> bytes = control_->try_receive(from, tag_);
    if (!bytes) return std::nullopt;
    return take<Awaited...>(from, *bytes);
  }
  /// Let go of all that has come, whatever it is.
  void discard(int from) const;

  /// Rank 0's message on all ranks. Collective.
  template <Message M>
  M broadcast(const M& own) const {
    return take<M>(0, control_->broadcast(encode(own), tag_));
  }
  /// Each rank's message, on rank 0 only. Collective.
  template <Message M>
  std::vector<M> gather(const M& own) const {
    std::vector<M> all;
    for (const std::string& bytes : control_->gather(encode(own), tag_)) {
      all.push_back(take<M>(static_cast<int>(all.size()), bytes));
    }
    return all;
  }

 private:
  template <Message... Awaited>
  Received<Awaited...> take(int from, std::string_view bytes) const {
    const Envelope envelope = opened(from, bytes);
    std::optional<Received<Awaited...>> message;
    const auto take_if = [&]<Message M>(std::type_identity<M>) {
      if (envelope.type == M::message_type) message.emplace(read<M>(from, envelope));
    };
    (take_if(std::type_identity<Awaited>{}), ...);
    if (!message) refuse(from, envelope, std::array{Awaited::message_type...});
    return *std::move(message);
  }
  template <Message M>
  M read(int from, const Envelope& envelope) const {
    try {
      return decode<M>(envelope);
    } catch (const ControlError& error) {
      damaged(from, error);
    }
  }
  Envelope opened(int from, std::string_view bytes) const;
  [[noreturn]] void refuse(int from, const Envelope& envelope, std::span<const MessageType> awaited) const;
  [[noreturn]] void damaged(int from, const ControlError& error) const;

  const Control* control_;
  int tag_;
};

/// The ranks of one cell, and its two channels. Those are the cell's own, so that what a failed cell left behind
/// disturbs no later one.
class CellTeam {
 public:
  CellTeam(const Control& control, std::vector<int> ranks, int cell_ordinal);

  const Control& control() const { return agreement_.control(); }
  const std::vector<int>& world_ranks() const { return ranks_; }
  /// Some of the members as a team of their own, in the order given. Only they call it.
  CellTeam some(const std::vector<std::size_t>& members) const;
  std::size_t size() const { return ranks_.size(); }
  std::size_t member() const { return member_; }
  int world_rank(std::size_t member) const { return ranks_[member]; }

  /// One message for all members: each joins its own with those of the members below it in a binary tree, and the first
  /// member's result goes back down. No member holds more than three. Collective over the members. What has come from
  /// below is joined also where ControlError is thrown because another one is silent.
  template <Message M>
  M converge(M own, const std::function<M(M, M)>& join) const {
    const std::vector<std::size_t> below = children();
    for (auto child = below.begin(); child != below.end(); ++child) {
      try {
        own = join(std::move(own), hear<M>(*child));
      } catch (const ControlError&) {
        for (++child; child != below.end(); ++child) {
          if (auto message = agreement_.try_receive<M>(ranks_[*child])) own = join(std::move(own), *std::move(message));
        }
        throw;
      }
    }
    if (member_ > 0) tell(parent(), own);
    return broadcast(std::move(own));
  }
  /// The first member's message on every member. Collective.
  template <Message M>
  M broadcast(M message) const {
    if (member_ > 0) message = hear<M>(parent());
    for (const std::size_t child : children()) tell(child, message);
    return message;
  }
  /// Whether it holds for some member. Collective.
  bool has_any(bool own) const {
    const auto join = [](Whether one, Whether other) { return Whether{.holds = one.holds || other.holds}; };
    return converge<Whether>({.holds = own}, join).holds;
  }

  /// Take what the other members sent to a pattern that is over. To be called after the members have
  /// converged: all of it has come then.
  void discard_leftovers() const;

  /// To one other member and from one, as the members agree. Not for patterns: what one rank of a failed pattern left
  /// here would be taken for what the ranks agree on next.
  template <Message M>
  void tell(std::size_t to, const M& message) const {
    agreement_.send(ranks_[to], message);
  }
  template <Message... Awaited>
  Received<Awaited...> hear(std::size_t from) const {
    return agreement_.receive<Awaited...>(ranks_[from]);
  }
  /// From who has others to wait for first.
  template <Message... Awaited>
  Received<Awaited...> hear_patiently(std::size_t from) const {
    return agreement_.receive_patiently<Awaited...>(ranks_[from]);
  }

  /// A pattern's own messages. Those that it leaves are discarded, so that it may stop at any point.
  template <Message M>
  void send(std::size_t to, const M& message) const {
    pattern_.send(ranks_[to], message);
  }
  template <Message... Awaited>
  Received<Awaited...> receive(std::size_t from) const {
    return pattern_.receive<Awaited...>(ranks_[from]);
  }
  template <Message... Awaited>
  std::optional<Received<Awaited...>> try_receive(std::size_t from) const {
    return pattern_.try_receive<Awaited...>(ranks_[from]);
  }

 private:
  std::size_t parent() const { return (member_ - 1) / 2; }
  /// Below it in the tree.
  std::vector<std::size_t> children() const;
  std::size_t place_of(int rank) const;

  Channel pattern_;
  Channel agreement_;
  std::vector<int> ranks_;
  std::size_t member_ = 0;
};

}  // namespace fabricbench
