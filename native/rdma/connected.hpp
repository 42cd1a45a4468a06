// What goes over reliable connections: messages that are sent or written into the peer's buffers, as `Transfer` says
// (transport/rdma_send.hpp, rdma_write.hpp, rdma_write_poll.hpp), posted ahead and granted. All connections of a device
// share what tells of their completions, and a list of those that keep a message back: whoever waits moves all of them
// on, else two ranks could each wait for a message that the other has not posted yet.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rdma/connection.hpp"

namespace fabricbench {

/// Where a message of the peer may go, as one end tells the other: the grants are numbered from 1, and each lies in a
/// place of its own by the lowest bits of its number, which is written last.
struct alignas(32) Grant {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t bytes = 0;
  std::uint64_t number = 0;
  std::uint64_t unused = 0;
};
inline constexpr std::size_t grant_places = 128;

/// The registered memory of a connection: what the peer writes, and what is written to the peer.
struct Grants {
  std::array<Grant, grant_places> from_peer{};
  std::array<Grant, grant_places> to_peer{};
};

/// What tells a receiver that polls its memory of a message: the message's number, counted from 1, in the last word of
/// a slot. Short messages lie right before it.
using ArrivalWord = std::uint64_t;

template <class Transfer>
class Connection;

/// What the connections of a device share.
template <class Transfer>
struct Connections {
  explicit Connections(std::shared_ptr<Adapter> opened)
      : adapter(std::move(opened)), completions(std::make_shared<Completions>(adapter)) {}

  /// Move on whatever keeps something back.
  void move_on() {
    completions->take_sends();
    std::erase_if(waiting, [](Connection<Transfer>* each) { return each->has_moved_on(); });
  }

  std::shared_ptr<Adapter> adapter;
  std::shared_ptr<Completions> completions;
  std::vector<Connection<Transfer>*> waiting;
};

template <class Transfer>
class Connection : public ConnectionEnd {
 public:
  // As many as the bandwidth tests that MPI's users know keep under way.
  static constexpr std::size_t most_posted = 64;

  Connection(std::shared_ptr<Connections<Transfer>> shared, const Site& site, const RdmaParameters& parameters)
      : ConnectionEnd(shared->adapter, shared->completions, site, with_arrival_word(parameters), 4 * most_posted,
                      2 * most_posted),
        shared_(std::move(shared)),
        short_bytes_(parameters.inline_bytes),
        slot_bytes_((short_bytes_ + 2 * sizeof(ArrivalWord) - 1) / sizeof(ArrivalWord) * sizeof(ArrivalWord)),
        memory_(shared_->adapter->allocate(sizeof(Grants) + (Transfer::is_polled ? 2 * grant_places * slot_bytes_ : 0),
                                           MemoryKind::plain)),
        grants_(new (memory_.data()) Grants) {
    shared_->waiting.reserve(shared_->waiting.capacity() + 1);
    const Adapter::Region& region = adapter().region_of(memory_.data());
    own_keys_ = {region.local_key, region.remote_key};
    if (!is_strict()) return;
    if (!site.is_first) not_granted_ = greetings_ = 1;
    if constexpr (Transfer::is_written) {
      write_ = verbs::Operation::write;
      told_by_ = &tells_;
      tells_.id = flow().id;
    }
  }
  ~Connection() {
    std::erase(shared_->waiting, this);
    if constexpr (Transfer::is_polled) flow().receives.ended = flow().receives.posted;
    end();
  }

  std::string address() const {
    QueuePairAddress own = end_address();
    own.memory = reinterpret_cast<std::uintptr_t>(grants_->from_peer.data());
    own.memory_key = own_keys_.remote;
    return own.text();
  }
  void meet(std::string_view text) {
    const QueuePairAddress peer = QueuePairAddress::parse(text);
    peer_memory_ = {.address = peer.memory, .key = peer.memory_key};
    meet_end(peer);
  }

  /// Post the receive of the next message, granted to the peer if it is `posted` there or needs to know where.
  std::uint64_t expect(std::span<std::byte> message, bool is_granted, int place = -1) {
    verbs::Segment segment = no_memory_;
    verbs::ReceiveRequest request{.segments = &segment, .segment_count = segments_of_none_};
    if (!message.empty()) {
      const Adapter::Region& region = adapter().region_of(message.data());
      segment = {reinterpret_cast<std::uintptr_t>(message.data()), static_cast<std::uint32_t>(message.size()),
                 region.local_key};
      if constexpr (Transfer::is_written) {
        next_grant() = {segment.address, region.remote_key, segment.bytes};
      } else {
        request.segments = &segment;
        request.segment_count = 1;
      }
    }
    std::uint64_t number = 0;
    if constexpr (Transfer::is_polled) {
      number = ++flow().receives.posted;
      expected_[number % grant_places] = message;
    } else {
      number = post(request);
    }
    flow().receives.place_of(number) = place;
    if (is_granted || grants_all_ || is_placed(message.size())) {
      grant();
    } else {
      ++not_granted_;
    }
    return number;
  }

  /// Send a message, once the peer has granted it if it is `posted`: its number among those that are given here.
  std::uint64_t give(std::span<const std::byte> message, bool waits_for_grant, bool wants_completion, int place = -1) {
    Given& given = given_[++given_count_ & (given_.size() - 1)];
    given = {.message = message,
             .number = 0,
             .place = place,
             .waits = waits_for_grant || grants_all_ || is_placed(message.size()),
             .wants_completion = wants_completion};
    move_or_wait();
    return given_count_;
  }
  bool has_left(std::uint64_t given) const { return launched_count_ >= given; }
  bool has_arrived(std::uint64_t given) const {
    return has_left(given) && flow().sends.has_done(given_[given & (given_.size() - 1)].number);
  }

  /// Launch what the peer has granted, and grant what it does not know of; whether nothing is kept back.
  bool has_moved_on() {
    tell_grants();
    while (launched_count_ < given_count_ && has_room()) {
      Given& given = given_[(launched_count_ + 1) & (given_.size() - 1)];
      if (given.waits && !is_granted(granted_count_ + 1)) break;
      if (given.waits) ++granted_count_;
      launch(given);
      ++launched_count_;
    }
    return launched_count_ == given_count_ && !wants_to_tell();
  }

  /// Nothing that is kept back is to be sent any more; memory of what is under way is kept.
  void release(std::shared_ptr<const void> memory) {
    given_count_ = launched_count_;
    keep(std::move(memory));
  }

  template <Receive mode>
  void wait_for_receive(std::uint64_t number) {
    wait<mode>(
        completions().receives(), [&] { return flow().receives.has_done(number); },
        [this] {
          if constexpr (Transfer::is_polled) {
            take_arrived([](RequestTally&, std::uint64_t) {});
            return false;
          } else {
            return completions().take_receives();
          }
        });
  }
  /// Note what has come into memory that is polled, and `tell(requests, number)` of each message, in their order.
  template <class Tell>
  void take_arrived(Tell tell) {
    RequestTally& receives = flow().receives;
    while (receives.done < receives.posted && has_landed(receives.done + 1 - greetings_)) {
      const std::span<std::byte> message = expected_[(receives.done + 1) % grant_places];
      if (!is_placed(message.size()) && !message.empty()) {
        const std::byte* const word = word_of(landing(receives.done + 1 - greetings_));
        std::memcpy(message.data(), word - message.size(), message.size());
      }
      tell(receives, ++receives.done);
    }
  }
  /// Until it has left, or until the peer has it.
  template <Receive mode>
  void wait_to_leave(std::uint64_t given) {
    wait<mode>(completions().sends(), [&] { return has_left(given); }, [this] { return completions().take_sends(); });
  }
  template <Receive mode>
  void wait_for_send(std::uint64_t given) {
    wait<mode>(
        completions().sends(), [&] { return has_arrived(given); }, [this] { return completions().take_sends(); });
  }

 private:
  struct Given {
    std::span<const std::byte> message{};
    std::uint64_t number = 0;  // in the send queue
    int place = -1;
    bool waits = false;
    bool wants_completion = false;
  };
  struct Keys {
    std::uint32_t local = 0;
    std::uint32_t remote = 0;
  };

  static RdmaParameters with_arrival_word(RdmaParameters parameters) {
    if (Transfer::is_polled) parameters.inline_bytes += sizeof(ArrivalWord);
    return parameters;
  }
  /// Whether messages of a size go where the peer has granted, rather than into a receive or a slot.
  bool is_placed(std::size_t bytes) const {
    return Transfer::is_written && (!Transfer::is_polled || bytes > short_bytes_);
  }

  // Behind the grants: slots that the peer writes, and those that are written to the peer.
  std::byte* landing(std::uint64_t number) {
    return memory_.data() + sizeof(Grants) + number % grant_places * slot_bytes_;
  }
  std::byte* leaving(std::uint64_t number) { return landing(number) + grant_places * slot_bytes_; }
  std::byte* word_of(std::byte* slot) const { return slot + slot_bytes_ - sizeof(ArrivalWord); }
  bool has_landed(std::uint64_t number) {
    const auto* const word = reinterpret_cast<const ArrivalWord*>(word_of(landing(number)));
    return __atomic_load_n(word, __ATOMIC_ACQUIRE) == number;
  }

  void launch(Given& given) {
    if constexpr (Transfer::is_polled) {
      launch_polled(given);
    } else {
      launch_told(given);
    }
    flow().sends.place_of(given.number) = given.place;
  }

  /// The payload into its place or, short, right before the word, and the word after all of it.
  void launch_polled(Given& given) {
    const std::span<const std::byte> message = given.message;
    const ArrivalWord number = ++launched_words_;
    std::byte* begin = word_of(leaving(number));
    std::memcpy(begin, &number, sizeof number);
    if (is_placed(message.size())) {
      const Grant& grant = grants_->from_peer[granted_count_ % grant_places];
      if (grant.bytes < message.size()) [[unlikely]]
        refuse_longer(message.size(), grant.bytes);
      verbs::Segment segment{reinterpret_cast<std::uintptr_t>(message.data()),
                             static_cast<std::uint32_t>(message.size()), adapter().region_of(message.data()).local_key};
      post_write(segment, {.address = grant.address, .key = grant.key}, false);
    } else if (!message.empty()) {
      begin -= message.size();
      std::memcpy(begin, message.data(), message.size());
    }
    const std::byte* const end = leaving(number) + slot_bytes_;
    verbs::Segment segment{reinterpret_cast<std::uintptr_t>(begin), static_cast<std::uint32_t>(end - begin),
                           own_keys_.local};
    const std::uint64_t place = peer_memory_.address + sizeof(Grants) + (number % grant_places + 1) * slot_bytes_;
    given.number =
        post_write(segment, {.address = place - segment.bytes, .key = peer_memory_.key}, given.wants_completion);
  }

  std::uint64_t post_write(verbs::Segment& segment, verbs::SendRequest::Remote remote, bool wants_completion) {
    verbs::SendRequest request;
    request.segments = &segment;
    request.segment_count = 1;
    request.operation = verbs::Operation::write;
    request.remote = remote;
    if (segment.bytes <= pair().inline_bytes()) request.flags = verbs::send_inline;
    return post(request, wants_completion);
  }

  void launch_told(Given& given) {
    const std::span<const std::byte> message = given.message;
    verbs::SendRequest request;
    verbs::Segment segment{reinterpret_cast<std::uintptr_t>(message.data()), static_cast<std::uint32_t>(message.size()),
                           0};
    if (message.size() <= pair().inline_bytes()) {
      request.flags = verbs::send_inline;
    } else {
      segment.local_key = adapter().region_of(message.data()).local_key;
    }
    request.segments = &segment;
    request.segment_count = message.empty() ? 0 : 1;
    if constexpr (Transfer::is_written) {
      const Grant& grant = grants_->from_peer[granted_count_ % grant_places];
      if (grant.bytes < message.size()) [[unlikely]]
        refuse_longer(message.size(), grant.bytes);
      request.operation = write_;
      request.next = told_by_;
      request.remote = {.address = grant.address, .key = grant.key};
    } else {
      request.operation = verbs::Operation::send;
    }
    given.number = post(request, given.wants_completion);
  }

  void move_or_wait() {
    if (has_moved_on()) [[likely]]
      return;
    if (std::ranges::find(shared_->waiting, this) == shared_->waiting.end()) shared_->waiting.push_back(this);
  }

  bool is_granted(std::uint64_t number) const {
    const Grant& grant = grants_->from_peer[number % grant_places];
    return __atomic_load_n(&grant.number, __ATOMIC_ACQUIRE) == number;
  }
  Grant& next_grant() { return grants_->to_peer[(grant_count_ + 1) % grant_places]; }
  void grant() {
    Grant& next = next_grant();
    next.number = ++grant_count_;
    if (wants_to_tell()) move_or_wait();
  }
  /// Before the peer has used half of what it knows of: grants are told by as many as can be.
  bool wants_to_tell() const {
    const std::uint64_t come = flow().receives.done - not_granted_;
    const std::uint64_t unused = told_count_ > come ? told_count_ - come : 0;
    return grant_count_ - told_count_ > 0 && grant_count_ - told_count_ >= unused;
  }
  void tell_grants() {
    if (!wants_to_tell()) return;
    while (told_count_ < grant_count_ && has_room()) {
      const std::size_t first = (told_count_ + 1) % grant_places;
      const std::size_t count = std::min<std::size_t>(grant_count_ - told_count_, grant_places - first);
      verbs::Segment segment{reinterpret_cast<std::uintptr_t>(&grants_->to_peer[first]),
                             static_cast<std::uint32_t>(count * sizeof(Grant)), own_keys_.local};
      post_write(segment, {.address = peer_memory_.address + first * sizeof(Grant), .key = peer_memory_.key}, false);
      told_count_ += count;
    }
  }

  [[noreturn]] static void refuse_longer(std::size_t bytes, std::size_t granted) {
    throw Failure(FailureCode::error, "a message of " + std::to_string(bytes) +
                                          " bytes does not fit into the peer's buffer of " + std::to_string(granted));
  }

  template <Receive mode, class IsDone, class Take>
  void wait(CompletionQueue& queue, IsDone is_done, Take take) {
    ConnectionEnd::wait<mode>(queue, is_done, take, [this] {
      if (shared_->waiting.empty()) [[likely]]
        return false;
      shared_->move_on();
      return true;
    });
  }

  std::shared_ptr<Connections<Transfer>> shared_;
  std::size_t short_bytes_;  // where memory is polled: up to this a message lies in its slot
  std::size_t slot_bytes_;
  MessageBuffer memory_;
  Grants* grants_;
  Keys own_keys_;
  verbs::Segment no_memory_ = no_memory();
  int segments_of_none_ = is_strict() ? 1 : 0;
  bool grants_all_ = Transfer::is_written || is_strict();
  // How a write is told to the peer: by its immediate value, or on iWARP, which has none, by a message without bytes
  // that follows it.
  verbs::Operation write_ = verbs::Operation::write_with_immediate;
  verbs::SendRequest* told_by_ = nullptr;
  verbs::SendRequest tells_{};
  verbs::SendRequest::Remote peer_memory_{};
  std::array<Given, 2 * most_posted> given_{};
  std::array<std::span<std::byte>, Transfer::is_polled ? grant_places : 0> expected_{};  // where memory is polled
  std::uint64_t launched_words_ = 0;
  std::uint64_t greetings_ = 0;  // receives that were posted before the first message's
  std::uint64_t given_count_ = 0;
  std::uint64_t launched_count_ = 0;
  std::uint64_t granted_count_ = 0;  // of the peer's grants, so many are used
  std::uint64_t grant_count_ = 0;    // to the peer
  std::uint64_t told_count_ = 0;
  std::uint64_t not_granted_ = 0;  // receives that the peer was not told of
};

/// Messages under way on many connections of a device, each in a place of its own that whoever posts it chooses.
template <class Transfer>
class ConnectionPool : public ConnectionPlaces<Connection<Transfer>> {
 public:
  ConnectionPool(std::shared_ptr<Connections<Transfer>> shared, std::size_t places)
      : ConnectionPlaces<Connection<Transfer>>(shared->completions, places), shared_(std::move(shared)) {}

  template <class Path>
  void post_send(std::size_t place, Path& path, std::span<const std::byte> message) {
    this->take_place(place, path.connection()).give(message, true, true, static_cast<int>(place));
  }
  template <class Path>
  void post_receive(std::size_t place, Path& path, std::span<std::byte> message) {
    this->take_place(place, path.connection()).expect(message, true, static_cast<int>(place));
  }
  std::span<const int> test() {
    const auto tell = this->begin();
    if constexpr (Transfer::is_polled) {
      for (Connection<Transfer>* const each : this->connections()) each->take_arrived(tell);
    } else {
      shared_->completions->take_receives(tell);
    }
    shared_->completions->take_sends(tell);
    if (!shared_->waiting.empty()) {
      std::erase_if(shared_->waiting, [](Connection<Transfer>* each) { return each->has_moved_on(); });
    }
    return this->end();
  }
  void release_send(std::size_t place, std::shared_ptr<const void> memory) { this->release(place, std::move(memory)); }
  void release_receive(std::size_t place, std::shared_ptr<const void> memory) {
    this->release(place, std::move(memory));
  }

 private:
  std::shared_ptr<Connections<Transfer>> shared_;
};

}  // namespace fabricbench
