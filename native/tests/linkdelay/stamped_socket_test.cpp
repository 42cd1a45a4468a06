// Stamps belong to datagrams, over the loopback interface of whoever runs this.
#include "linkdelay/stamped_socket.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace fabricbench::linkdelay {
namespace {

constexpr int kTimeoutMs = 5'000;

class Stamps : public testing::Test {
 protected:
  Stamps() {
    sender_.connect_to(receiver_);
    // The kernel begins to stamp what arrives a little after the first socket asked.
    for (int i = 0; i < 1'000; ++i) {
      const std::uint32_t number = send(0);
      const auto arrival = receiver_.take_arrival(kTimeoutMs);
      sender_.take_sent_ns(number, kTimeoutMs);
      if (arrival && arrival->received_ns) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::uint32_t send(std::uint64_t sequence) {
    std::array<std::uint8_t, 64> datagram{};
    std::memcpy(datagram.data(), &sequence, sizeof sequence);
    return sender_.send(datagram);
  }

  StampedSocket receiver_{"127.0.0.1"};
  StampedSocket sender_{"127.0.0.1"};
};

TEST_F(Stamps, AStampThatNobodyTookIsNotTheNextDatagrams) {
  for (int i = 0; i < 100; ++i) {
    send(0);
    const auto first = receiver_.take_arrival(kTimeoutMs);
    const std::uint32_t number = send(1);
    const auto second = receiver_.take_arrival(kTimeoutMs);
    const auto sent_ns = sender_.take_sent_ns(number, kTimeoutMs);
    ASSERT_TRUE(first && second && sent_ns);
    EXPECT_EQ(second->sequence, 1U);
    // Nothing is stamped for a moment while the last such socket of another program closes.
    if (!first->received_ns || !second->received_ns) continue;
    EXPECT_GE(*sent_ns, *first->received_ns);
    EXPECT_LE(*sent_ns, *second->received_ns);
    return;
  }
  FAIL() << "no two datagrams in a row were stamped as they arrived";
}

TEST_F(Stamps, AStampThatDoesNotComeIsNoneAndNotAnothers) {
  const std::uint32_t number = send(0);
  EXPECT_FALSE(sender_.take_sent_ns(number + 1, 50));
}

TEST_F(Stamps, EachDatagramHasItsOwn) {
  for (std::uint64_t sequence = 0; sequence < 20; ++sequence) {
    const std::uint32_t number = send(sequence);
    const auto sent_ns = sender_.take_sent_ns(number, kTimeoutMs);
    const auto arrival = receiver_.take_arrival(kTimeoutMs);
    ASSERT_TRUE(sent_ns && arrival && arrival->received_ns);
    EXPECT_EQ(arrival->sequence, sequence);
    EXPECT_LE(*sent_ns, *arrival->received_ns);
  }
}

}  // namespace
}  // namespace fabricbench::linkdelay
