// Connections of layer rdma between two devices of one process, over a library that holds them to what adapters demand:
// what of a cell's parameters reaches a queue pair, that nothing is written or read where memory is gone, what is said
// where the peer is gone, and what becomes of paths that end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/watchdog.hpp"
#include "transport/rdma_atomic.hpp"
#include "transport/rdma_read.hpp"
#include "transport/rdma_send.hpp"
#include "transport/rdma_write.hpp"
#include "transport/rdma_write_plain.hpp"
#include "transport/rdma_write_poll.hpp"
#include "verbs/fake_library.hpp"
#include "verbs/two_ends.hpp"

namespace fabricbench {
namespace {

using verbs::fake::ledger;

template <class Transfer, Receive way>
void pass_messages(const std::shared_ptr<Adapter>& one, const std::shared_ptr<Adapter>& other, std::size_t bytes) {
  constexpr std::size_t slots = 64;
  std::vector<MessageBuffer> out;
  std::vector<MessageBuffer> in;  // outlives the path that has receives posted there
  Connected<Transfer, way> ends(one, other);
  for (std::size_t i = 0; i < slots; ++i) {
    out.push_back(one->allocate(bytes, MemoryKind::plain));
    in.push_back(other->allocate(bytes, MemoryKind::plain));
    ends.far.post_receive(i, in[i].span());
  }
  for (std::size_t number = 0; number < 10 * slots; ++number) {  // each counter goes round several times
    const std::size_t slot = number % slots;
    ends.near.wait(slot);
    fill(out[slot].span(), number);
    ends.near.post_send(slot, out[slot].span());
    ends.far.wait(slot);
    ASSERT_TRUE(is_filled(in[slot].span(), number)) << number;
    ends.far.post_receive(slot, in[slot].span());
    ends.move_on();
  }
  for (std::size_t slot = 0; slot < slots; ++slot) ends.near.wait(slot);
}

template <class Transfer, Receive way>
void pass_round_trips(const std::shared_ptr<Adapter>& one, const std::shared_ptr<Adapter>& other, std::size_t bytes) {
  MessageBuffer question = one->allocate(bytes, MemoryKind::plain);
  MessageBuffer asked = other->allocate(bytes, MemoryKind::plain);
  MessageBuffer answer = one->allocate(bytes, MemoryKind::plain);
  Connected<Transfer, way> ends(one, other);
  for (std::size_t number = 0; number < 1000; ++number) {
    fill(question.span(), number);
    ends.far.prepost(asked.span());
    ends.near.prepost(answer.span());
    ends.move_on();
    ends.near.send(question.span());
    ASSERT_TRUE(ends.far.receive_preposted());
    ends.far.send(asked.span());
    ASSERT_TRUE(ends.near.receive_preposted());
    ASSERT_TRUE(is_filled(answer.span(), number)) << number;
  }
}

TEST_F(OverVerbs, MessagesArriveAsTheyWereSentThroughEveryTwoSidedDoor) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{65}, message_bytes}) {
    const std::shared_ptr<Adapter> one = adapter();
    const std::shared_ptr<Adapter> other = adapter();
    pass_messages<SendTransfer, Receive::polling>(one, other, bytes);
    pass_messages<SendTransfer, Receive::blocking>(one, other, bytes);
    pass_messages<WriteTransfer, Receive::polling>(one, other, bytes);
    pass_messages<WriteTransfer, Receive::blocking>(one, other, bytes);
    pass_messages<WritePollTransfer, Receive::polling>(one, other, bytes);
    pass_round_trips<SendTransfer, Receive::blocking>(one, other, bytes);
    pass_round_trips<WriteTransfer, Receive::polling>(one, other, bytes);
    pass_round_trips<WritePollTransfer, Receive::polling>(one, other, bytes);
  }
  EXPECT_EQ(ledger().not_ready, 0) << "a message came before its receive";
}

TEST_F(OverVerbs, ReadsAndAdditionsReachTheMemoryThatIsExposed) {
  const std::shared_ptr<Adapter> one = adapter();
  const std::shared_ptr<Adapter> other = adapter();
  MessageBuffer far = other->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer near = one->allocate(message_bytes, MemoryKind::plain);
  fill(far.span(), 3);
  {
    OneSided<ReadAccess> ends(one, other);
    ends.near.aim_at(ends.far.expose(far.span()));
    ends.near.wait_for(ends.near.operate(near.span()));
    EXPECT_TRUE(is_filled(near.span(), 3));
  }
  OneSided<AtomicAccess> ends(one, other);
  std::uint64_t word = 0;
  std::memcpy(far.data(), &word, sizeof word);
  ends.near.aim_at(ends.far.expose(far.span()));
  for (std::uint64_t before = 0; before < 300; ++before) {
    ends.near.wait_for(ends.near.operate(near.span().first(sizeof word)));
    std::memcpy(&word, near.data(), sizeof word);
    ASSERT_EQ(word, before);
  }
}

/// How many requests all queue pairs were given, and how many of them asked for a completion.
std::pair<std::size_t, std::size_t> requests_sent() {
  std::size_t all = 0;
  std::size_t marked = 0;
  for (const auto& [number, told] : ledger().told) {
    all += told.flags.size();
    marked += static_cast<std::size_t>(
        std::ranges::count_if(told.flags, [](unsigned flags) { return (flags & verbs::send_signaled) != 0; }));
  }
  return {all, marked};
}

TEST_F(OverVerbs, APlainWriteIsOneRequestWhoseLastByteTheOtherEndSees) {
  const std::shared_ptr<Adapter> one = adapter();
  const std::shared_ptr<Adapter> other = adapter();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{65}, message_bytes}) {
    MessageBuffer near = one->allocate(bytes, MemoryKind::plain);
    MessageBuffer far = other->allocate(bytes, MemoryKind::plain);
    OneSided<PlainWriteAccess> ends(one, other);
    ends.near.aim_at(ends.far.expose(far.span()));
    const std::size_t before = requests_sent().first;
    for (std::size_t number = 0; number < 300; ++number) {
      fill(near.span(), number);
      ends.near.wait_for(ends.near.operate(near.span()));
      ends.far.wait_for_byte(far.span().back(), near.span().back());
      ASSERT_TRUE(is_filled(far.span(), number));
    }
    EXPECT_EQ(requests_sent().first - before, 300U) << "no credit, no immediate, no word beside the message";
  }
}

TEST_F(OverVerbs, OfPlainWritesUnderWayTheOldestCanAlwaysBeWaitedFor) {
  for (const std::size_t depth : {2U, 3U, 16U, 64U}) {
    const std::shared_ptr<Adapter> one = adapter();
    const std::shared_ptr<Adapter> other = adapter();
    MessageBuffer near = one->allocate(message_bytes, MemoryKind::plain);
    MessageBuffer far = other->allocate(message_bytes, MemoryKind::plain);
    OneSided<PlainWriteAccess> ends(one, other, {.depth = depth});
    ends.near.aim_at(ends.far.expose(far.span()));
    const auto [sent, marked] = requests_sent();
    for (std::size_t number = 1; number <= 1000; ++number) {
      const std::uint64_t newest = ends.near.operate(near.span(), false);
      if (number >= depth) ends.near.wait_for(newest - depth + 1);
    }
    ends.near.wait_for(ends.near.operate(near.span()));
    const auto [all_sent, all_marked] = requests_sent();
    EXPECT_EQ(all_sent - sent, 1001U);
    EXPECT_LE(all_marked - marked, 1000 / std::min<std::size_t>(depth / 2, 16) + 2) << depth;
  }
}

TEST_F(OverVerbs, WhoWaitsForTheLastOfManyFindsThemAllBeforeItSleeps) {
  const std::shared_ptr<Adapter> one = adapter();
  const std::shared_ptr<Adapter> other = adapter();
  MessageBuffer far = other->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer near = one->allocate(message_bytes, MemoryKind::plain);
  for (const int at_once : {16, 17, 33, 64}) {
    OneSided<ReadAccess, Receive::blocking> ends(one, other);  // no event is left of a wait before
    ends.near.aim_at(ends.far.expose(far.span()));
    std::uint64_t last = 0;
    for (int i = 0; i < at_once; ++i) last = ends.near.operate(near.span());
    ends.near.wait_for(last);
    EXPECT_EQ(ledger().faults, std::vector<std::string>{}) << at_once;
  }
}

TEST_F(OverVerbs, ParametersReachTheQueuePair) {
  const RdmaParameters asked{.depth = 8,
                             .moderation = 4,
                             .inline_bytes = 200,
                             .mtu = 1024,
                             .traffic_class = 0x68,
                             .service_level = 5,
                             .timeout = 17,
                             .retry_count = 3};
  const Connected<SendTransfer> ends(adapter(), adapter(), asked);
  ASSERT_EQ(ledger().told.size(), 2U);
  for (const auto& [number, told] : ledger().told) {
    EXPECT_EQ(told.setup.capacity.inline_bytes, 200U);
    EXPECT_EQ(told.to_receive.path_mtu, 3);  // 1024 bytes
    EXPECT_EQ(told.to_receive.address.route.traffic_class, 0x68);
    EXPECT_EQ(told.to_receive.address.service_level, 5);
    EXPECT_EQ(told.to_receive.address.route.gid_index, 1);
    EXPECT_EQ(told.to_send.timeout, 17);
    EXPECT_EQ(told.to_send.retries, 3);
    EXPECT_EQ(told.to_send.reads_out, 16);
  }
  EXPECT_EQ(ends.near.depth(), 8U);
}

TEST_F(OverVerbs, AQueuePairThatIsRefusedIsBlamedOnTheDepthOnlyWhereTooMuchMayHaveBeenAskedFor) {
  const auto refusal = [&](int error) {
    ledger().abilities.queue_pair_error = error;
    return failure_of([&] { const Connected<SendTransfer> ends(adapter(), adapter()); });
  };
  EXPECT_NE(refusal(ENOMEM).find("take a smaller depth"), std::string::npos) << refusal(ENOMEM);
  EXPECT_NE(refusal(EINVAL).find("take a smaller depth"), std::string::npos);
  EXPECT_EQ(refusal(EPERM).find("depth"), std::string::npos) << refusal(EPERM);
  EXPECT_NE(refusal(EPERM).find("Operation not permitted"), std::string::npos) << refusal(EPERM);
  EXPECT_NE(refusal(ENOSYS).find("Function not implemented"), std::string::npos) << refusal(ENOSYS);
}

TEST_F(OverVerbs, APathThatHasEndedLeavesNoRoomForMessagesBehind) {
  Completions completions(adapter());
  Completions::FlowHandle handle = completions.add_flow(500, 500);
  Flow& flow = *handle;  // where it is while the device lives
  EXPECT_GT(flow.sends.places.capacity(), 500U);
  handle.reset();
  EXPECT_EQ(flow.sends.places.capacity(), 1U);
  EXPECT_EQ(flow.receives.places.capacity(), 1U);
  EXPECT_EQ(flow.sends.place_of(77), -1) << "a late completion is nobody's";
}

TEST_F(OverVerbs, AnAdapterThatCanLessInlineHasNoAtomicsAndDoesNotResizeCarriesMessagesAllTheSame) {
  ledger().abilities = {.inline_bytes = 48, .has_atomics = false, .resizes = false};
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{48}, std::size_t{64}, message_bytes}) {
    const std::shared_ptr<Adapter> one = adapter();
    const std::shared_ptr<Adapter> other = adapter();
    pass_messages<SendTransfer, Receive::polling>(one, other, bytes);
    pass_messages<WriteTransfer, Receive::blocking>(one, other, bytes);
    pass_messages<WritePollTransfer, Receive::polling>(one, other, bytes);
  }
  for (const auto& [number, told] : ledger().told) {
    EXPECT_LE(told.setup.capacity.inline_bytes, 48U);
    EXPECT_GE(told.setup.capacity.inline_bytes, 36U) << "far less than it can";
  }
  ledger().abilities.inline_bytes = 0;
  const Connected<WritePollTransfer> ends(adapter(), adapter());
  EXPECT_EQ(ledger().told.rbegin()->second.setup.capacity.inline_bytes, 0U);
  const auto shared = std::make_shared<Connections<SendTransfer>>(adapter());
  std::vector<std::unique_ptr<ConnectedPath<Receive::polling, SendTransfer>>> paths;
  const std::string said = failure_of([&] {
    for (int i = 0; i < 5000; ++i) {
      paths.push_back(std::make_unique<ConnectedPath<Receive::polling, SendTransfer>>(
          shared, Site{.token = 1, .peer_rank = 1}, RdmaParameters{}));
    }
  });
  EXPECT_GE(paths.size(), 256U);
  EXPECT_NE(said.find("not every adapter resizes it: use fewer flows"), std::string::npos) << said;
}

TEST_F(OverVerbs, PeersOfOtherVersionsOfRoceAreToldSo) {
  const std::shared_ptr<Adapter> one = adapter();
  speak("IB/RoCE v1");
  const std::shared_ptr<Adapter> other = adapter();
  const std::string said = failure_of([&] { const Connected<SendTransfer> ends(one, other); });
  EXPECT_NE(said.find("device fake0 speaks RoCE v2 by its address (GID) 1, and the peer RoCE v1"), std::string::npos)
      << said;
  const Connected<SendTransfer> ends(other, adapter());  // both of version 1
  EXPECT_EQ(other->port().roce_version, 1);
}

TEST_F(OverVerbs, EverySoManySendsAskForACompletionAndShortOnesAreInline) {
  const std::shared_ptr<Adapter> one = adapter();
  const std::shared_ptr<Adapter> other = adapter();
  Connected<SendTransfer> ends(one, other, {.moderation = 4, .inline_bytes = 100});
  MessageBuffer out = one->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer in = other->allocate(message_bytes, MemoryKind::plain);
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{101}}) {
    for (int i = 0; i < 20; ++i) {
      ends.near.send(out.span().first(bytes));
      ASSERT_TRUE(ends.far.receive(in.span()));
    }
  }
  const std::vector<unsigned>& flags = ledger().told.begin()->second.flags;
  ASSERT_EQ(flags.size(), 40U);
  EXPECT_EQ(std::ranges::count_if(flags, [](unsigned one_flag) { return (one_flag & verbs::send_signaled) != 0; }), 10);
  for (std::size_t i = 0; i < flags.size(); ++i) EXPECT_EQ((flags[i] & verbs::send_inline) != 0, i < 20) << i;
}

TEST_F(OverVerbs, WhatFailedFirstIsSaidAndNotWhatThatFlushed) {
  const std::shared_ptr<Adapter> one = adapter();
  Connected<SendTransfer, Receive::blocking> ends(one, adapter());
  MessageBuffer memory = one->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer in = one->allocate(message_bytes, MemoryKind::plain);
  ledger().is_dead = true;
  ends.near.prepost(in.span());  // it is flushed, and told first
  ends.near.send(memory.span());
  const Watchdog interrupting(0.02);
  const std::string said = failure_of([&] { ends.near.receive_preposted(); });
  EXPECT_NE(said.find("to rank 1 failed (IBV_WC_RETRY_EXC_ERR, 12)"), std::string::npos) << said;
}

TEST_F(OverVerbs, AReceiverThatHearsNothingAsksWhetherItsPeerIsThere) {
  for (const bool is_polling : {false, true}) {
    ledger().is_dead = false;
    const std::shared_ptr<Adapter> one = adapter();
    MessageBuffer in = one->allocate(message_bytes, MemoryKind::plain);
    const Watchdog interrupting(0.02);
    const auto receive = [&](auto ends) {
      ledger().is_dead = true;
      return failure_of([&] { ends->near.receive(in.span()); });
    };
    const std::uint64_t begin = Clock::now();
    const std::string said =
        is_polling ? receive(std::make_unique<Connected<WriteTransfer, Receive::polling>>(one, adapter()))
                   : receive(std::make_unique<Connected<WriteTransfer, Receive::blocking>>(one, adapter()));
    EXPECT_NE(said.find("IBV_WC_RETRY_EXC_ERR"), std::string::npos) << said;
    EXPECT_LT(Clock::now() - begin, 1'000'000'000U);
  }
}

verbs::AsyncEvent event_of(verbs::AsyncEventKind kind, int port = 1) {
  verbs::AsyncEvent event{};
  event.port = port;
  event.kind = kind;
  return event;
}

TEST_F(OverVerbs, WhatTheDeviceTellsOfItselfEndsACellByItsName) {
  const std::shared_ptr<Adapter> one = adapter();
  const auto told = [&](verbs::AsyncEventKind kind, int port = 1) {
    ledger().events.push_back(event_of(kind, port));
    return failure_of([&] { one->refuse_failed(); });
  };
  using enum verbs::AsyncEventKind;
  EXPECT_NE(told(port_error).find("RDMA device fake0/1 told IBV_EVENT_PORT_ERR meanwhile: its link went down"),
            std::string::npos);
  EXPECT_NE(told(queue_pair_fatal).find("IBV_EVENT_QP_FATAL"), std::string::npos);
  for (const verbs::AsyncEventKind kind : {established, port_active, manager_change, client_reregister, gid_change}) {
    EXPECT_EQ(told(kind), "it did not fail") << static_cast<int>(kind);
  }
  EXPECT_EQ(told(port_error, 2), "it did not fail") << "that is another port's";
  readdress("0000:0000:0000:0000:0000:ffff:0a01:0063");
  const std::string changed = told(gid_change);
  EXPECT_NE(changed.find("IBV_EVENT_GID_CHANGE"), std::string::npos) << changed;
  EXPECT_NE(changed.find("and now it has GID 1 0000:0000:0000:0000:0000:ffff:0a01:0063"), std::string::npos) << changed;
}

TEST_F(OverVerbs, WhatADeviceToldBeforeACellIsNoneOfItsButAFailureForGoodIs) {
  const std::shared_ptr<Adapter> one = adapter();
  ledger().events = {event_of(verbs::AsyncEventKind::port_error), event_of(verbs::AsyncEventKind::port_active)};
  one->forget_events();
  one->refuse_failed();
  ledger().events = {event_of(verbs::AsyncEventKind::port_error), event_of(verbs::AsyncEventKind::device_fatal)};
  EXPECT_NE(failure_of([&] { one->forget_events(); }).find("IBV_EVENT_DEVICE_FATAL"), std::string::npos);
  EXPECT_NE(failure_of([&] { one->refuse_failed(); }).find("IBV_EVENT_DEVICE_FATAL"), std::string::npos);
  const std::shared_ptr<Adapter> removed = adapter();
  ledger().is_gone = true;
  EXPECT_NE(failure_of([&] { removed->forget_events(); }).find("was it removed"), std::string::npos);
}

TEST_F(OverVerbs, AWaitEndsWhenTheDeviceTellsOfAFailureAndAFailedMessageSaysItToo) {
  const std::shared_ptr<Adapter> one = adapter();
  MessageBuffer in = one->allocate(message_bytes, MemoryKind::plain);
  {
    Connected<SendTransfer> ends(one, adapter());
    ledger().events = {event_of(verbs::AsyncEventKind::port_error)};
    const std::uint64_t begin = Clock::now();
    const std::string said = failure_of([&] { ends.near.receive(in.span()); });
    EXPECT_NE(said.find("IBV_EVENT_PORT_ERR"), std::string::npos) << said;
    EXPECT_LT(Clock::now() - begin, 1'500'000'000U);
  }
  Connected<SendTransfer> ends(one, adapter());
  ledger().is_dead = true;
  ends.near.send(in.span());
  ledger().events = {event_of(verbs::AsyncEventKind::port_error)};
  const std::string said = failure_of([&] { ends.near.receive(in.span()); });
  EXPECT_NE(said.find("IBV_WC_RETRY_EXC_ERR"), std::string::npos) << said;
  EXPECT_NE(said.find("IBV_EVENT_PORT_ERR"), std::string::npos) << said;
}

TEST_F(OverVerbs, WhomOthersCompletionsWakeAsksForItsPeerAllTheSame) {
  const std::shared_ptr<Adapter> one = adapter();
  MessageBuffer in = one->allocate(message_bytes, MemoryKind::plain);
  Connected<SendTransfer, Receive::blocking> ends(one, adapter());
  ledger().is_dead = true;
  ledger().foreign_events_us = 20'000;
  const std::uint64_t begin = Clock::now();
  const std::string said = failure_of([&] { ends.near.receive(in.span()); });
  EXPECT_NE(said.find("IBV_WC_RETRY_EXC_ERR"), std::string::npos) << said;
  EXPECT_LT(Clock::now() - begin, 2'000'000'000U);
}

TEST_F(OverVerbs, APathTellsThroughWhatItGoesAndWhatIsInForce) {
  ledger().abilities.inline_bytes = 48;
  {
    const Connected<SendTransfer> ends(adapter(), adapter(), {.mtu = 1100});
    const RdmaAttachment here = ends.near.attachment();
    EXPECT_EQ(here.device, "fake0");
    EXPECT_EQ(here.port, 1);
    EXPECT_EQ(here.transport, RdmaTransport::roce_v2);
    EXPECT_EQ(here.netdev, "h1");
    EXPECT_EQ(here.gid_index, 1);
    EXPECT_EQ(here.gid, "0000:0000:0000:0000:0000:ffff:0a01:0001");
    EXPECT_EQ(here.port_mtu, 4096U);
    EXPECT_EQ(here.path_mtu, 1024U);
    EXPECT_LE(here.inline_bytes, 48U);
    EXPECT_GE(here.inline_bytes, 36U);
  }
  speak("IB/RoCE v1");
  EXPECT_EQ(adapter()->attachment().transport, RdmaTransport::roce_v1);
}

TEST_F(OverVerbs, WhatIsToldOfAPathThatHasEndedIsNobodys) {
  const std::shared_ptr<Adapter> one = adapter();
  const std::shared_ptr<Adapter> other = adapter();
  auto first = std::make_unique<Connected<SendTransfer>>(one, other);
  MessageBuffer out = one->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer in = other->allocate(message_bytes, MemoryKind::plain);
  const auto near_device = first->near_device;
  {
    ConnectionPool<SendTransfer> pool(near_device, 4);
    ConnectionPool<SendTransfer> far_pool(first->far_device, 4);
    far_pool.post_receive(1, first->far, in.span());
    ledger().is_held = true;
    pool.post_send(1, first->near, out.span());
  }
  first.reset();  // its completion has not come
  ledger().is_held = false;
  verbs::fake::release();
  ConnectionPool<SendTransfer> pool(near_device, 4);
  EXPECT_TRUE(pool.test().empty());
}

TEST_F(OverVerbs, ADeviceHasRoomForAnyNumberOfPathsOneAfterTheOther) {
  const auto shared = std::make_shared<Connections<SendTransfer>>(adapter());
  for (int i = 0; i < 5000; ++i) {  // all at once would be more than its completion queue has room for
    const ConnectedPath<Receive::polling, SendTransfer> path(shared, {.token = 1, .peer_rank = 1}, {});
  }
  std::vector<std::unique_ptr<ConnectedPath<Receive::polling, SendTransfer>>> paths;
  const std::string said = failure_of([&] {
    for (int i = 0; i < 5000; ++i) {
      paths.push_back(std::make_unique<ConnectedPath<Receive::polling, SendTransfer>>(
          shared, Site{.token = 1, .peer_rank = 1}, RdmaParameters{}));
    }
  });
  EXPECT_NE(said.find("fake0 has at most 32767: use fewer flows"), std::string::npos) << said;
}

}  // namespace
}  // namespace fabricbench
