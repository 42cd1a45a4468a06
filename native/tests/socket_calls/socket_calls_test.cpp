// Calls on the sockets of a connection over the loopback, with the library that notes them before the C library.
#include "socket_calls/socket_calls.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/socket.hpp"

extern "C" void fabricbench_note_socket_calls(fabricbench::SocketCallLog* log);

namespace fabricbench {
namespace {

constexpr std::string_view text = "thirty-two bytes of a message...";

class NotedCalls : public testing::Test {
 protected:
  NotedCalls() {
    const Descriptor listener = open_socket(AF_INET, SOCK_STREAM, 0, "SOCK_STREAM");
    bind_to(listener, SocketAddress(socket_address(INADDR_LOOPBACK, 0)));
    EXPECT_EQ(listen(listener.get(), 1), 0);
    sender_ = open_socket(AF_INET, SOCK_STREAM, 0, "SOCK_STREAM");
    connect_to(sender_, SocketAddress::bound_to(listener));
    receiver_ = Descriptor(accept(listener.get(), nullptr, nullptr));
    watch(sender_);
    watch(receiver_);
    log_.calls = calls_.data();
    log_.capacity = calls_.size();
    fabricbench_note_socket_calls(&log_);
  }
  ~NotedCalls() override { fabricbench_note_socket_calls(nullptr); }

  void watch(const Descriptor& socket, bool is_watched = true) {
    log_.is_watched.at(static_cast<std::size_t>(socket.get())) = is_watched;
  }

  void send_text() const { ASSERT_EQ(::send(sender_.get(), text.data(), text.size(), 0), std::ssize(text)); }
  void receive_text() {
    ASSERT_EQ(::recv(receiver_.get(), got_.data(), got_.size(), 0), std::ssize(text));
    EXPECT_EQ(std::string_view(got_.data(), text.size()), text);
  }

  std::array<SocketCall, 8> calls_{};
  SocketCallLog log_;
  Descriptor sender_;
  Descriptor receiver_;
  std::array<char, 64> got_{};
};

TEST_F(NotedCalls, EveryCallThatMovesBytesIsNotedWithItsTimes) {
  std::array<iovec, 2> out{iovec{const_cast<char*>(text.data()), 10},
                           iovec{const_cast<char*>(text.data()) + 10, text.size() - 10}};
  std::array<iovec, 2> in{iovec{got_.data(), 5}, iovec{got_.data() + 5, got_.size() - 5}};
  msghdr sent{};
  sent.msg_iov = out.data();
  sent.msg_iovlen = out.size();
  msghdr received{};
  received.msg_iov = in.data();
  received.msg_iovlen = in.size();
  const int from = sender_.get();
  const int to = receiver_.get();
  const std::array<std::function<ssize_t()>, 5> sending{
      [&] { return ::send(from, text.data(), text.size(), 0); },
      [&] { return ::sendto(from, text.data(), text.size(), 0, nullptr, 0); },
      [&] { return ::sendmsg(from, &sent, 0); },
      [&] { return ::write(from, text.data(), text.size()); },
      [&] { return ::writev(from, out.data(), 2); },
  };
  const std::array<std::function<ssize_t()>, 5> receiving{
      [&] { return ::recv(to, got_.data(), got_.size(), 0); },
      [&] { return ::recvfrom(to, got_.data(), got_.size(), 0, nullptr, nullptr); },
      [&] { return ::recvmsg(to, &received, 0); },
      [&] { return ::read(to, got_.data(), got_.size()); },
      [&] { return ::readv(to, in.data(), 2); },
  };
  for (std::size_t i = 0; i < sending.size(); ++i) {
    log_.count = 0;
    got_.fill('\0');
    const std::int64_t before = read_clock_ns(CLOCK_REALTIME);
    ASSERT_EQ(sending[i](), std::ssize(text));
    ASSERT_EQ(receiving[i](), std::ssize(text)) << i;
    const std::int64_t after = read_clock_ns(CLOCK_REALTIME);
    EXPECT_EQ(std::string_view(got_.data(), text.size()), text) << i;
    ASSERT_EQ(log_.count, 2U) << i;
    EXPECT_TRUE(calls_[0].is_sending);
    EXPECT_FALSE(calls_[1].is_sending);
    for (const SocketCall& call : {calls_[0], calls_[1]}) {
      EXPECT_EQ(call.bytes, text.size());
      EXPECT_GE(call.ended, call.began);
    }
    EXPECT_GE(calls_[0].began, before);
    EXPECT_GE(calls_[1].began, calls_[0].ended);
    EXPECT_GE(after, calls_[1].ended);
  }
}

TEST_F(NotedCalls, WhatIsReceivedHasTheKernelsStampWhereThatIsOn) {
  send_text();
  receive_text();
  EXPECT_EQ(calls_[1].arrived, 0);
  set_option(receiver_, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE,
             "SO_TIMESTAMPING");
  // The kernel begins to stamp a little later.
  for (int tries = 0; tries < 1000 && calls_[1].arrived == 0; ++tries) {
    log_.count = 0;
    send_text();
    receive_text();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(calls_[1].arrived, calls_[0].began);
  EXPECT_LE(calls_[1].arrived, calls_[1].ended);
}

TEST_F(NotedCalls, CallsThatMoveNothingAreNotNoted) {
  EXPECT_EQ(::recv(receiver_.get(), got_.data(), got_.size(), MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(log_.count, 0U);
  send_text();
  EXPECT_EQ(::recv(receiver_.get(), got_.data(), got_.size(), MSG_PEEK), std::ssize(text));
  EXPECT_EQ(log_.count, 1U);
}

TEST_F(NotedCalls, OtherSocketsAndOtherThreadsAreNotNoted) {
  watch(sender_, false);
  send_text();
  receive_text();
  EXPECT_EQ(log_.count, 1U);
  std::jthread([&] {
    send_text();
    receive_text();
  }).join();
  EXPECT_EQ(log_.count, 1U);
}

TEST_F(NotedCalls, NothingIsNotedOnceItIsOff) {
  fabricbench_note_socket_calls(nullptr);
  send_text();
  receive_text();
  EXPECT_EQ(log_.count, 0U);
}

TEST_F(NotedCalls, WhatFindsNoRoomIsCounted) {
  for (int i = 0; i < 6; ++i) {
    send_text();
    receive_text();
  }
  EXPECT_EQ(log_.count, 12U);
  EXPECT_TRUE(calls_[6].is_sending);
}

TEST_F(NotedCalls, ControlMessagesThatTheCallerAsksForAreItsOwn) {
  set_option(receiver_, SOL_SOCKET, SO_TIMESTAMP, 1, "SO_TIMESTAMP");
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  send_text();
  alignas(cmsghdr) std::array<char, 128> control{};
  iovec part{got_.data(), got_.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ASSERT_EQ(::recvmsg(receiver_.get(), &header, 0), std::ssize(text));
  EXPECT_EQ(header.msg_control, control.data());
  EXPECT_GT(header.msg_controllen, 0U);
}

}  // namespace
}  // namespace fabricbench
