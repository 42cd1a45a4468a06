// One turn of a rank in a lockstep pattern: one message on each link that sends, one from each that receives, complete
// when all of them are. Three kinds: over a reliable path that is polled ranks read while they write, or two with full
// buffers would wait for each other for ever; a transport that can post messages posts all and waits; an unreliable one
// may lose a message, and then the turn is lost and the next one goes on.
#pragma once

#include <poll.h>

#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "core/measurement.hpp"
#include "core/message_buffer.hpp"
#include "core/watchdog.hpp"
#include "pattern/channels.hpp"
#include "pattern/payload.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

/// The buffers of a rank's links, and what verification does with them.
template <Transport T>
class TurnBuffers {
 public:
  TurnBuffers(std::span<LinkOver<T>> links, const Task& task) : links_(links), team_(task.team) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      out_.push_back(task.allocate(links[i].link.sends ? task.probe.message_bytes : 0));
      in_.push_back(task.allocate(links[i].link.receives ? task.probe.message_bytes : 0));
    }
  }

  std::span<std::byte> out(std::size_t link) { return out_[link].span(); }
  std::span<std::byte> in(std::size_t link) { return in_[link].span(); }
  std::shared_ptr<const void> out_keeper(std::size_t link) const { return out_[link].keeper(); }
  std::shared_ptr<const void> in_keeper(std::size_t link) const { return in_[link].keeper(); }

  /// Give every message of a turn its own payload.
  void fill(std::uint32_t turn) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      fill_payload(payload(out_[i].span()), seed(links_[i], team_.member(), turn));
    }
  }
  /// How many of the messages that came are as they were sent, and how many there are. `has_come(link)` tells of the
  /// last turn.
  template <class HasCome>
  std::pair<std::size_t, std::size_t> compare(std::uint32_t turn, HasCome has_come) {
    std::size_t same = 0;
    std::size_t all = 0;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (!links_[i].link.receives || !has_come(i)) continue;
      ++all;
      same += is_payload(payload(in_[i].span()), seed(links_[i], links_[i].link.peer, turn)) ? 1 : 0;
    }
    return {same, all};
  }

 private:
  static std::span<std::byte> payload(std::span<std::byte> message) {
    if (T::traits.is_reliable || message.empty()) return message;
    return message.subspan(sizeof(DatagramHeader));
  }
  static std::uint64_t seed(const LinkOver<T>& link, std::size_t sender, std::uint32_t turn) {
    // Of a message of a byte only the lowest bits are seen: sender, turn and path each have a part in them.
    return (std::uint64_t{link.token} << 32U) + (std::uint64_t{turn} << 16U) + sender * 5 + turn * 7 + link.token * 3;
  }

  std::span<LinkOver<T>> links_;
  const CellTeam& team_;
  std::deque<MessageBuffer> out_;
  std::deque<MessageBuffer> in_;
};

template <Transport T>
std::size_t count_sending(std::span<LinkOver<T>> links) {
  return static_cast<std::size_t>(
      std::ranges::count_if(links, [](const LinkOver<T>& link) { return link.link.sends; }));
}

template <Transport T>
class Turns;

/// Over reliable paths that are polled: write what there is room for, read what there is, sleep only when neither goes
/// on. A stream gives and takes parts of a message, other layers whole ones.
template <PolledTransport T>
  requires(T::traits.is_reliable && !PostingTransport<T>)
class Turns<T> {
 public:
  Turns(std::span<LinkOver<T>> links, Task& task)
      : links_(links), buffers_(links, task), sending_(count_sending(links)), sent_(links.size()) {
    came_.resize(links.size());
    polls_.resize(2 * links.size());
    for (LinkOver<T>& link : links_) link.path->set_bound(task.probe.reply_timeout_seconds);
  }

  TurnBuffers<T>& buffers() { return buffers_; }
  Counters counters() const { return counters_; }
  void start_counting() { counters_ = {}; }

  bool has_come(std::size_t) const { return true; }

  /// Take a turn. Always complete: what does not come is a Failure.
  bool take() {
    std::ranges::fill(sent_, 0);
    std::ranges::fill(came_, 0);
    patience_ = {};
    while (!push()) wait_and_read();
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const std::span<std::byte> rest = buffers_.in(i).subspan(came_[i]);
      if (!rest.empty()) links_[i].path->receive(rest);
    }
    counters_.sent += sending_;
    return true;
  }

 private:
  /// Write what there is room for; whether everything is written.
  bool push() {
    bool is_all = true;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const std::span<std::byte> out = buffers_.out(i);
      if (sent_[i] < out.size()) sent_[i] += links_[i].path->try_send(out.subspan(sent_[i]));
      is_all = is_all && sent_[i] == out.size();
    }
    return is_all;
  }

  /// Sleep until something can be read or written, and read it. A full queue of the interface gives no notice, so that
  /// who waits for it looks again after about the time of some frames.
  void wait_and_read() {
    bool is_interface_full = false;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      T& path = *links_[i].path;
      const bool wants_in = came_[i] < buffers_.in(i).size();
      bool wants_out = sent_[i] < buffers_.out(i).size();
      if (wants_out && path.has_full_interface()) {
        is_interface_full = true;
        wants_out = false;
      }
      polls_[2 * i] = {wants_in ? path.descriptor() : -1, POLLIN, 0};
      polls_[2 * i + 1] = {wants_out ? path.sending_descriptor() : -1, POLLOUT, 0};
    }
    if (poll_all(is_interface_full) <= 0) return look_at_patience();
    patience_ = {};
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (polls_[2 * i].revents == 0) continue;
      came_[i] += links_[i].path->try_receive(buffers_.in(i).subspan(came_[i]));
    }
  }

  int poll_all(bool is_interface_full) {
    constexpr timespec interface_retry{0, interface_retry_ns};
    constexpr timespec longest_sleep{1, 0};
    return ppoll(polls_.data(), polls_.size(), is_interface_full ? &interface_retry : &longest_sleep, nullptr);
  }

  /// Nothing has become ready, or the watchdog interrupted the sleep: give up once that has lasted too long.
  void look_at_patience() {
    const std::size_t moved = std::reduce(sent_.begin(), sent_.end()) + std::reduce(came_.begin(), came_.end());
    if (std::exchange(moved_, moved) != moved) patience_ = {};
    if (!patience_.is_over(seconds_to_ns(reliable_bound_seconds))) return;
    throw Failure(FailureCode::timeout, "nothing moved for 10 s: is the link up and are the peers alive?");
  }

  std::span<LinkOver<T>> links_;
  TurnBuffers<T> buffers_;
  std::size_t sending_;
  std::vector<std::size_t> sent_;
  std::vector<std::size_t> came_;
  std::vector<pollfd> polls_;  // of each link where it receives and where it sends
  Patience patience_;
  std::size_t moved_ = 0;
  Counters counters_;
};

/// Over transports that take messages without waiting: all are posted, then waited for.
template <PostingTransport T>
class Turns<T> {
 public:
  Turns(std::span<LinkOver<T>> links, Task& task)
      : links_(links), buffers_(links, task), sending_(count_sending(links)) {}
  /// Where a turn was thrown out of, its messages are still under way.
  ~Turns() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      links_[i].path->release_receive(in_slot, buffers_.in_keeper(i));
      links_[i].path->release_send(out_slot, buffers_.out_keeper(i));
    }
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  TurnBuffers<T>& buffers() { return buffers_; }
  Counters counters() const { return counters_; }
  void start_counting() { counters_ = {}; }

  bool has_come(std::size_t) const { return true; }

  bool take() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].link.receives) links_[i].path->post_receive(in_slot, buffers_.in(i));
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].link.sends) links_[i].path->post_send(out_slot, buffers_.out(i));
    }
    for (LinkOver<T>& link : links_) {
      link.path->wait(in_slot);
      link.path->wait(out_slot);
    }
    counters_.sent += sending_;
    return true;
  }

 private:
  static constexpr std::size_t in_slot = 0;
  static constexpr std::size_t out_slot = 1;

  std::span<LinkOver<T>> links_;
  TurnBuffers<T> buffers_;
  std::size_t sending_;
  Counters counters_;
};

/// Over unreliable paths: the number of a message is that of its turn. A neighbour may be some turns ahead.
template <Transport T>
  requires(!T::traits.is_reliable)
class Turns<T> {
 public:
  Turns(std::span<LinkOver<T>> links, Task& task) : links_(links), buffers_(links, task), states_(links.size()) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      links_[i].path->set_bound(task.probe.reply_timeout_seconds);
      states_[i].base = *links_[i].sequence;
    }
  }
  /// Numbers go on behind what was sent here; the two ends of a path agree on them before each cell.
  ~Turns() {
    for (std::size_t i = 0; i < links_.size(); ++i) *links_[i].sequence = states_[i].base + turn_;
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  TurnBuffers<T>& buffers() { return buffers_; }
  Counters counters() const { return counters_; }
  void start_counting() { counters_ = {}; }

  /// Whether the last turn's message is the newest of that link.
  bool has_come(std::size_t link) const { return states_[link].newest == turn_; }

  /// Take a turn; false where a message of it was lost.
  bool take() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (!links_[i].link.sends) continue;
      write_header(buffers_.out(i), {links_[i].token, states_[i].base + turn_});
      links_[i].path->send(buffers_.out(i));
      ++counters_.sent;
    }
    const std::uint64_t lost_before = counters_.lost;
    has_waited_in_vain_ = false;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].link.receives) receive(i);
    }
    ++turn_;
    in_row_ = has_waited_in_vain_ ? in_row_ + 1 : 0;
    if (in_row_ >= most_in_row) [[unlikely]]
      give_up();
    return counters_.lost == lost_before;
  }

 private:
  // Of turns that waited for a message until the bound; what a burst of losses costs that ends earlier is no time.
  static constexpr unsigned most_in_row = 20;

  struct State {
    std::uint32_t base = 0;
    std::uint32_t newest = 0;  // one more than the newest turn that came
  };

  /// Take the turn's message of a link, or count it as lost: in vain where none came within the bound. One of a later
  /// turn ends the wait for those before it, of which none is waited for any more.
  void receive(std::size_t link) {
    State& state = states_[link];
    if (state.newest > turn_) [[unlikely]] {
      const bool has_come_before = state.newest == turn_ + 1;
      counters_.lost += has_come_before ? 0 : 1;
      return;
    }
    while (links_[link].path->receive(buffers_.in(link))) {
      const DatagramHeader header = read_header(buffers_.in(link));
      const std::uint32_t turn = header.sequence - state.base;
      if (header.token != links_[link].token || turn >= 1U << 31U) [[unlikely]]
        continue;
      if (turn < state.newest) [[unlikely]] {
        ++counters_.reordered;
        continue;
      }
      state.newest = turn + 1;
      if (turn == turn_) [[likely]]
        return;
      if (turn > turn_) {  // the one we wait for was overtaken
        ++counters_.lost;
        return;
      }
    }
    ++counters_.lost;
    has_waited_in_vain_ = true;
  }

  [[noreturn]] void give_up() const {
    throw Failure(FailureCode::timeout,
                  "20 turns in a row lost a message: is something filtering this protocol on the "
                  "way, or is the timeout below the time of a turn?");
  }

  std::span<LinkOver<T>> links_;
  TurnBuffers<T> buffers_;
  std::vector<State> states_;
  std::uint32_t turn_ = 0;
  unsigned in_row_ = 0;
  bool has_waited_in_vain_ = false;  // of the turn under way
  Counters counters_;
};

}  // namespace fabricbench
