// What a link of a flood over datagrams counts when much of what was sent is still in a queue as its time ends.
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "pattern/flood.hpp"

namespace fabricbench {
namespace {

constexpr std::size_t message_bytes = 64;

/// A queue from a sender to a receiver, both in this process, on which messages have the fate that a test gives them.
class Queue {
 public:
  static constexpr Traits traits = datagram_traits;

  explicit Queue(std::function<int(std::size_t)> copies_of) : copies_of_(std::move(copies_of)) {}
  std::size_t largest_message() const { return message_bytes; }
  std::string address() const { return {}; }
  void meet(std::string_view) {}
  void set_bound(double) {}
  void send(std::span<const std::byte> message) { try_send(message); }
  bool receive(std::span<std::byte> message) { return try_receive(message) > 0; }
  std::size_t try_send(std::span<const std::byte> message) {
    for (int copies = copies_of_(sent_++); copies > 0; --copies) queued_.emplace_back(message.begin(), message.end());
    return message.size();
  }
  std::size_t try_receive(std::span<std::byte> message) {
    if (queued_.empty()) return 0;
    std::ranges::copy(queued_.front(), message.begin());
    queued_.pop_front();
    return message.size();
  }
  std::size_t queued() const { return queued_.size(); }
  int descriptor() const { return -1; }
  int sending_descriptor() const { return -1; }
  bool has_full_interface() const { return false; }

 private:
  std::function<int(std::size_t)> copies_of_;
  std::size_t sent_ = 0;
  std::deque<std::vector<std::byte>> queued_;
};
static_assert(PolledTransport<Queue>);

/// A flood of one link: so many messages in each phase, with so many in the queue when one ends.
class OneLink {
 public:
  explicit OneLink(std::function<int(std::size_t)> copies_of) : path_(std::move(copies_of)) {}

  Counters flood(std::size_t warmup, std::size_t measured, std::size_t after, std::size_t depth) {
    push(warmup);
    take_but(depth);
    sender_.start_counting();
    receiver_.start_counting();
    push(measured);
    take_but(depth);
    sender_.stop_counting();
    receiver_.stop_counting();
    push(after);
    take_but(0);
    const FloodLinkState& state = sender_.state;
    receiver_.finish({.has_failed = false,
                      .bytes = state.sent_bytes,
                      .messages = state.sent_messages,
                      .measured_first = state.measured_first,
                      .measured_end = state.measured_end});
    return receiver_.state.receipt.counters;
  }

 private:
  void push(std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i) sender_.push(message_);
  }
  void take_but(std::size_t depth) {
    for (std::uint64_t came = 0; path_.queued() > depth;) receiver_.take(message_, came);
  }

  static constexpr std::uint32_t first = 1;
  Queue path_;
  std::uint32_t sender_sequence_ = first;
  std::uint32_t receiver_sequence_ = first;
  LinkOver<Queue> sending_{.link = {}, .path = &path_, .token = 7, .sequence = &sender_sequence_};
  LinkOver<Queue> receiving_{.link = {}, .path = &path_, .token = 7, .sequence = &receiver_sequence_};
  FloodLink<Queue> sender_{sending_, message_bytes};
  FloodLink<Queue> receiver_{receiving_, message_bytes};
  std::vector<std::byte> message_ = std::vector<std::byte>(message_bytes);
};

TEST(FloodLink, OfALongQueueTheShareThatWasLostIsThatOfThePath) {
  const auto four_of_16_lost = [](std::size_t number) { return number % 16 < 4 ? 0 : 1; };
  for (const std::size_t depth : {0, 16, 160, 1600}) {
    OneLink link(four_of_16_lost);
    const Counters counters = link.flood(1600, 1600, 160, depth);
    EXPECT_NEAR(static_cast<double>(counters.lost), static_cast<double>(counters.sent) / 4, 4) << depth;
    EXPECT_GE(counters.sent, 1600U) << depth;
    EXPECT_EQ(counters.duplicated + counters.reordered, 0U) << depth;
  }
}

TEST(FloodLink, DoublesThatComeLateAreCountedAsThoseBefore) {
  const auto one_of_16_twice = [](std::size_t number) { return number % 16 == 5 ? 2 : 1; };
  for (const std::size_t depth : {0, 160, 1600}) {
    OneLink link(one_of_16_twice);
    const Counters counters = link.flood(1600, 1600, 160, depth);
    EXPECT_NEAR(static_cast<double>(counters.duplicated), static_cast<double>(counters.sent) / 16, 1) << depth;
    EXPECT_EQ(counters.lost, 0U) << depth;
  }
}

TEST(FloodLink, WhatWasSentAfterTheMeasuredPhaseIsInNoCount) {
  OneLink link([](std::size_t) { return 1; });
  const Counters counters = link.flood(0, 320, 1000, 32);
  EXPECT_EQ(counters.sent, 320U);
  EXPECT_EQ(counters.lost, 0U);
}

TEST(FloodLink, WhatNeverCameIsLostThoughNothingBehindItShowsTheGap) {
  OneLink link([](std::size_t number) { return number < 100 ? 1 : 0; });
  const Counters counters = link.flood(50, 200, 10, 0);
  EXPECT_EQ(counters.sent, 200U);
  EXPECT_EQ(counters.lost, 150U);
}

}  // namespace
}  // namespace fabricbench
