// Paths that note the stages of their messages, over the loopback: what the kernel stamps is found again in its row.
#include "transport/staged.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/loopback.hpp"
#include "transport/frame.hpp"
#include "transport/ip.hpp"
#include "transport/tcp.hpp"
#include "transport/udp.hpp"

namespace fabricbench {
namespace {

constexpr std::size_t staged_trips = 40;
constexpr std::size_t staged_bytes = 100;
/// Another in each process: tests that run at once share the loopback.
const auto filling = static_cast<std::byte>(1 + getpid() % 251);
/// The token of a path lies where its messages begin: raw sockets admit no others.
const std::uint32_t token_of_filling = 0x01010101U * std::to_integer<std::uint32_t>(filling);
const Site first_site{.token = token_of_filling, .is_first = true};
const Site second_site{.token = token_of_filling};

/// The kernel begins to stamp what arrives some time after the first socket has asked for it, and stops with the last:
/// one of its own asks during all tests.
class StagedPaths : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    asking = open_socket(AF_INET, SOCK_DGRAM, 0, "SOCK_DGRAM");
    constexpr int stamps = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE;
    set_option(asking, SOL_SOCKET, SO_TIMESTAMPING, stamps, "SO_TIMESTAMPING");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  static void TearDownTestSuite() { asking = {}; }

 private:
  static inline Descriptor asking;
};

/// Round trips between two paths, of which the first of each batch of ten is kept on neither side.
template <class Path>
std::pair<StageReport, StageReport> ping_pong(Path& first, Path& second) {
  first.set_bound(1.0);
  second.set_bound(1.0);
  second.begin_stages(staged_trips);
  first.begin_stages(staged_trips);
  std::jthread following([&] {
    std::vector<std::byte> message(staged_bytes);
    for (std::size_t i = 0; i < staged_trips; ++i) {
      ASSERT_TRUE(second.receive(message));
      second.send(message);
      if (i % 10 == 0) continue;
      second.keep(static_cast<std::int64_t>(i), 0);
      second.settle();
    }
  });
  const std::vector<std::byte> out(staged_bytes, filling);
  std::vector<std::byte> in(staged_bytes);
  for (std::size_t i = 0; i < staged_trips; ++i) {
    first.settle();
    const std::uint64_t begin = Clock::now();
    first.send(out);
    EXPECT_TRUE(first.receive(in));
    const std::uint64_t end = Clock::now();
    if (i % 10 != 0) first.keep(static_cast<std::int64_t>(i), static_cast<std::int64_t>(end - begin));
  }
  following.join();
  return {first.take_stages(), second.take_stages()};
}

/// Every boundary of one end, in the order of time.
void expect_in_order(const StageReport& report, bool leads) {
  ASSERT_EQ(report.messages.size(), staged_trips - staged_trips / 10);
  EXPECT_FALSE(report.refused.contains("scheduled"));
  for (const StageStamps& one : report.messages) {
    EXPECT_NE(one.number % 10, 0);
    EXPECT_GT(one.scheduled, one.before);
    EXPECT_GE(one.departed, one.scheduled);
    EXPECT_GE(one.received, one.arrived);
    if (one.resumed > 0) {
      EXPECT_GE(one.resumed, one.arrived);
      EXPECT_GE(one.received, one.resumed);
    }
    if (leads) {
      EXPECT_GE(one.arrived, one.departed);
      EXPECT_GE(one.round_trip, one.received - one.before - 1'000'000);
    } else {
      EXPECT_GT(one.before, one.received);
    }
  }
}

/// `parameters` are the path's own.
template <template <Receive> class Path, Receive mode, class... Parameters>
void expect_every_boundary(Parameters... parameters) {
  const Attachment attachment = over_the_loopback();
  Staged<Path<mode>, mode> first(attachment, first_site, parameters...);
  Staged<Path<mode>, mode> second(attachment, second_site, parameters...);
  std::jthread accepting([&] { second.meet(first.address()); });
  first.meet(second.address());
  accepting.join();
  // A path is used by one cell after the other.
  for (int cell = 0; cell < 2; ++cell) {
    const auto [leads, follows] = ping_pong(first, second);
    expect_in_order(leads, true);
    expect_in_order(follows, false);
  }
}

TEST_F(StagedPaths, DatagramsPassEveryBoundaryInOrder) {
  expect_every_boundary<Udp, Receive::blocking>();
  expect_every_boundary<Udp, Receive::polling>();
}

/// What needs a right that few have.
bool may_open(int domain, int protocol) { return Descriptor(::socket(domain, SOCK_RAW, protocol)).get() >= 0; }

TEST_F(StagedPaths, PacketsOfRawSocketsPassEveryBoundaryInOrder) {
  if (!may_open(AF_INET, 253)) GTEST_SKIP() << "no raw sockets without CAP_NET_RAW";
  expect_every_boundary<Ip, Receive::blocking>();
  expect_every_boundary<Ip, Receive::polling>();
  if (!over_the_loopback().interface->address_6) GTEST_SKIP() << "the loopback has no IPv6";
  expect_every_boundary<Ip, Receive::blocking>(AddressFamily::ipv6);
}

TEST_F(StagedPaths, FramesPassEveryBoundaryInOrder) {
  if (!may_open(AF_PACKET, 0)) GTEST_SKIP() << "no packet sockets without CAP_NET_RAW";
  expect_every_boundary<Frame, Receive::blocking>();
  expect_every_boundary<Frame, Receive::polling>();
}

TEST_F(StagedPaths, MessagesOfAStreamPassEveryBoundaryInOrder) {
  expect_every_boundary<Tcp, Receive::blocking>();
  expect_every_boundary<Tcp, Receive::polling>();
}

/// Three messages one after the other, then one answer, many times: the rows of the first end.
template <class First, class Second>
StageReport bursts(First& first, Second& second) {
  first.set_bound(1.0);
  second.set_bound(1.0);
  first.begin_stages(staged_trips);
  std::jthread following([&] {
    std::vector<std::byte> message(staged_bytes);
    for (std::size_t i = 0; i < staged_trips; ++i) {
      for (int k = 0; k < 3; ++k) ASSERT_TRUE(second.receive(message));
      second.send(message);
    }
  });
  const std::vector<std::byte> out(staged_bytes, filling);
  std::vector<std::byte> in(staged_bytes);
  for (std::size_t i = 0; i < staged_trips; ++i) {
    first.settle();
    const std::uint64_t begin = Clock::now();
    for (int k = 0; k < 3; ++k) first.send(out);
    EXPECT_TRUE(first.receive(in));
    first.keep(static_cast<std::int64_t>(i), static_cast<std::int64_t>(Clock::now() - begin));
  }
  following.join();
  return first.take_stages();
}

template <template <Receive> class Path>
void expect_bursts_to_begin_with_their_first_message() {
  const Attachment attachment = over_the_loopback();
  Staged<Path<Receive::blocking>, Receive::blocking> first(attachment, first_site);
  Path<Receive::blocking> second(attachment, second_site);
  std::jthread accepting([&] { second.meet(first.address()); });
  first.meet(second.address());
  accepting.join();
  const StageReport report = bursts(first, second);
  ASSERT_EQ(report.messages.size(), staged_trips);
  for (const StageStamps& one : report.messages) {
    EXPECT_GT(one.scheduled, one.before);
    EXPECT_GE(one.departed, one.scheduled);
    EXPECT_GE(one.arrived, one.departed);
    EXPECT_GE(one.round_trip, one.received - one.before - 1'000'000);
  }
}

TEST_F(StagedPaths, MessagesAtOnceAreToldFromTheCallOfTheFirstToTheArrivalOfTheLast) {
  expect_bursts_to_begin_with_their_first_message<Udp>();
  expect_bursts_to_begin_with_their_first_message<Tcp>();
}

TEST_F(StagedPaths, PacketsAtOnceAreToldLikewise) {
  if (!may_open(AF_INET, 253)) GTEST_SKIP() << "no raw sockets without CAP_NET_RAW";
  expect_bursts_to_begin_with_their_first_message<Ip>();
}

TEST_F(StagedPaths, FramesAtOnceAreToldLikewise) {
  if (!may_open(AF_PACKET, 0)) GTEST_SKIP() << "no packet sockets without CAP_NET_RAW";
  expect_bursts_to_begin_with_their_first_message<Frame>();
}

TEST_F(StagedPaths, ASmallMessageThatIsHeldBackIsReleasedByAnAcknowledgement) {
  const Attachment attachment = over_the_loopback();
  using Held = Staged<Tcp<Receive::blocking>, Receive::blocking>;
  Held first(attachment, Site{.is_first = true}, AddressFamily::ipv4, words::Nodelay::off);
  Held second(attachment, Site{}, AddressFamily::ipv4, words::Nodelay::off);
  std::jthread accepting([&] { second.meet(first.address()); });
  first.meet(second.address());
  accepting.join();
  const StageReport report = bursts(first, second);
  ASSERT_EQ(report.messages.size(), staged_trips);
  const auto is_released = [](const StageStamps& one) {
    return one.acknowledged > one.before && one.scheduled >= one.acknowledged &&
           one.scheduled - one.before > 10'000'000;
  };
  // The first few are acknowledged at once, as a connection begins.
  EXPECT_GT(std::ranges::count_if(report.messages, is_released), static_cast<std::ptrdiff_t>(staged_trips / 4));
}

TEST_F(StagedPaths, WhatFindsNoRoomIsLeftOut) {
  const Attachment attachment = over_the_loopback();
  Staged<Udp<Receive::blocking>, Receive::blocking> path(attachment, Site{});
  path.begin_stages(1);
  path.keep(1, 0);
  path.keep(2, 0);
  const StageReport report = path.take_stages();
  ASSERT_EQ(report.messages.size(), 1U);
  EXPECT_EQ(report.messages.front().number, 1);
}

}  // namespace
}  // namespace fabricbench
