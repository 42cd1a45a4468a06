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
#include "core/rank_list.hpp"
#include "core/tree.hpp"

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
  /// The same of whichever rank says it.
  template <Message... Awaited>
  Received<Awaited...> receive_of_any() const {
    const auto [from, bytes] = control_->receive_of_any(tag_);
    return take<Awaited...>(from, bytes);
  }
  /// The same if one has come, without waiting for it.
  template <Message... Awaited>
  std::optional<Received<Awaited...>> try_receive(int from) const {
    const std::optional<std::string> bytes = control_->try_receive(from, tag_);
    if (!bytes) return std::nullopt;
    return take<Awaited...>(from, *bytes);
  }
  /// Let go of all that has come, of whom and whatever it is.
  void discard_all() const;

  /// Rank 0's message on all ranks. Collective.
  template <Message M>
  M broadcast(const M& own) const {
    return take<M>(0, control_->broadcast(encode(own), tag_));
  }
  /// Whether it holds on all ranks. Collective.
  bool is_on_all(bool own) const;
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

/// Some ranks in their order, as a tree below rank 0, which need not be one of them: along it go rank 0's orders to
/// them and what they report. Up to nine ranks, rank 0 among them, are a star.
class CellTree {
 public:
  CellTree(const Channel& channel, RankList ranks);

  /// With rank 0.
  std::size_t size() const { return size_; }

  /// Pass on what this rank was told, or rank 0 says, to those below.
  template <Message M>
  void pass_on(const M& message) const {
    for (const Branch& branch : place_.branches()) channel_.send(rank_at(branch.root), message);
  }
  /// Who is directly above; not on rank 0.
  int above() const { return rank_at(place_.parent().value()); }
  /// Who is directly below.
  std::vector<int> below() const;

  /// Join what this rank has with what those below it have, in their order, and say it to the one above; on rank 0 what
  /// all have. Throws as receive() does.
  template <Message M, class Join>
  M collect(M own, Join join) const {
    for (const Branch& branch : place_.branches()) {
      own = join(std::move(own), channel_.receive<M>(rank_at(branch.root)));
    }
    if (place_.parent()) channel_.send(above(), own);
    return own;
  }

 private:
  int rank_at(std::size_t place) const;
  std::size_t place_at(int rank) const;

  Channel channel_;
  RankList ranks_;
  std::size_t first_;  // the place of rank 0 among the ranks, or behind them
  std::size_t size_;
  TreePlace place_;
};

/// The ranks of one cell, and its two channels. Those are the cell's own, so that what a failed cell left behind
/// disturbs no later one.
class CellTeam {
 public:
  CellTeam(const Control& control, RankList ranks, int cell_ordinal);
  CellTeam(const Control& control, const std::vector<int>& ranks, int cell_ordinal)
      : CellTeam(control, RankList(ranks), cell_ordinal) {}

  const Control& control() const { return agreement_.control(); }
  const RankList& world_ranks() const { return ranks_; }
  /// Some of the members as a team of their own, in the order given. Only they call it.
  CellTeam some(const std::vector<std::size_t>& members) const;
  std::size_t size() const { return ranks_.size(); }
  std::size_t member() const { return member_; }
  int world_rank(std::size_t member) const { return ranks_[member]; }

  /// One message for all members: each joins its own with those of the members below it in a tree, and the first
  /// member's result goes back down. The tree is binary in a team of up to nine, else TreePlace's. Collective over the
  /// members. What has come from below is joined also where ControlError is thrown because another one is silent.
  template <Message M>
  M converge(M own, const std::function<M(M, M)>& join) const {
    return broadcast(collect<M>(std::move(own), join));
  }
  /// The first half of it: the first member has the result. What the others have is of no use.
  template <Message M>
  M collect(M own, const std::function<M(M, M)>& join) const {
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
    return own;
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
  void discard_leftovers() const { pattern_.discard_all(); }

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

  /// This member's place in the tree along which the first member's orders go: a star of up to nine.
  TreePlace order_place() const { return {size(), member_}; }

 private:
  bool is_binary() const { return size() <= TreePlace::largest_star; }
  std::size_t parent() const { return is_binary() ? (member_ - 1) / 2 : order_place().parent().value(); }
  /// Below it in the tree.
  std::vector<std::size_t> children() const;
  std::size_t place_of(int rank) const { return ranks_.place_of(rank).value_or(ranks_.size()); }

  Channel pattern_;
  Channel agreement_;
  RankList ranks_;
  std::size_t member_ = 0;
};

/// The orders of a pattern's first member to all others, each of whom passes them on to those below it. However a
/// member's part ends, those below hear that it is over: an order that was made by default.
template <Message Order>
class TeamOrders {
 public:
  explicit TeamOrders(const CellTeam& team) : team_(team), place_(team.order_place()) {}
  ~TeamOrders() {
    if (!is_over_) pass_on({});
  }
  TeamOrders(const TeamOrders&) = delete;
  TeamOrders& operator=(const TeamOrders&) = delete;

  /// On the first member.
  void give(const Order& order) const { pass_on(order); }
  /// On the others: the next order, already passed on; nothing once it is over. Throws as CellTeam::receive does.
  std::optional<Order> next() {
    const Order order = team_.receive<Order>(place_.parent().value());
    pass_on(order);
    is_over_ = order.is_over();
    if (is_over_) return std::nullopt;
    return order;
  }

 private:
  void pass_on(const Order& order) const {
    for (const Branch& branch : place_.branches()) team_.send(branch.root, order);
  }

  const CellTeam& team_;
  TreePlace place_;
  bool is_over_ = false;
};

}  // namespace fabricbench
