#include "transport/tcp.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tests/loopback.hpp"

namespace fabricbench {
namespace {

constexpr Secret of_the_path{0x0123456789abcdefU, 0xfedcba9876543210U};

std::vector<std::byte> bytes_of(const Secret& secret) {
  std::vector<std::byte> bytes(sizeof secret);
  std::memcpy(bytes.data(), secret.data(), sizeof secret);
  return bytes;
}

/// Somebody who has found the port, and says this there.
Descriptor stranger(const std::string& address, const std::vector<std::byte>& says) {
  const SocketAddress to = SocketAddress::parse(address);
  Descriptor socket = open_socket(AF_INET, SOCK_STREAM, 0, "SOCK_STREAM");
  EXPECT_EQ(connect(socket.get(), to.get(), to.size()), 0);
  if (!says.empty()) {
    EXPECT_EQ(::send(socket.get(), says.data(), says.size(), MSG_NOSIGNAL), static_cast<ssize_t>(says.size()));
  }
  return socket;
}

TEST(SocketAddress, IsReadAsItIsWritten) {
  for (const std::string text : {"10.98.1.2:40123", "[fd00::2]:40123", "[::1]:0"}) {
    EXPECT_EQ(SocketAddress::parse(text).text(), text);
  }
  for (const std::string text : {"", "10.98.1.2", "10.98.1:4", "fd00::2", "[fd00::2]", "[10.98.1.2]:x", "host:4"}) {
    EXPECT_THROW(SocketAddress::parse(text), Failure) << text;
  }
}

TEST(SocketAddress, OfOneLinkIsOfTheInterfaceThatItIsUsedOn) {
  sockaddr_in6 address{};
  const SocketAddress of_link = SocketAddress::parse("[fe80::1]:7", 3);
  std::memcpy(&address, of_link.get(), sizeof address);
  EXPECT_EQ(address.sin6_scope_id, 3U);
  const SocketAddress of_any = SocketAddress::parse("[fd00::1]:7", 3);
  std::memcpy(&address, of_any.get(), sizeof address);
  EXPECT_EQ(address.sin6_scope_id, 0U);
  EXPECT_TRUE(of_link.has_host_of(SocketAddress::parse("[fe80::1]:8")));
  EXPECT_FALSE(of_link.has_host_of(of_any));
  EXPECT_FALSE(of_any.has_host_of(SocketAddress::parse("10.0.0.1:7")));
}

TEST(Tcp, ConnectsOverTheVersionOfIpThatIsAskedFor) {
  const Attachment attachment = over_the_loopback();
  if (!attachment.interface->address_6) GTEST_SKIP() << "the loopback has no IPv6 address";
  for (const AddressFamily family : {AddressFamily::ipv4, AddressFamily::ipv6}) {
    Tcp<Receive::blocking> first(attachment, {.secret = of_the_path, .is_first = true}, family);
    Tcp<Receive::blocking> second(attachment, {.secret = of_the_path}, family);
    const SocketAddress where = SocketAddress::parse(second.address());
    EXPECT_EQ(where.family(), domain_of(family));
    std::jthread accepting([&] { second.meet(first.address()); });
    first.meet(second.address());
  }
}

TEST(Tcp, NeedsAnAddressOfTheVersionThatIsAskedFor) {
  Attachment attachment = over_the_loopback();
  attachment.interface->address_6.reset();
  EXPECT_THROW(Tcp<Receive::blocking>(attachment, Site{}, AddressFamily::ipv6), Failure);
}

TEST(Tcp, AStrangerWithAWrongSecretHalfOfItOrNoneIsTurnedAwayAndThePeerGetsIn) {
  const Attachment attachment = over_the_loopback();
  Tcp<Receive::blocking> first(attachment, {.secret = of_the_path, .is_first = true});
  Tcp<Receive::blocking> second(attachment, {.secret = of_the_path});
  std::vector<std::byte> half = bytes_of(of_the_path);
  half.resize(half.size() / 2);
  // They are before the peer in the port's queue.
  std::vector<Descriptor> strangers;
  strangers.push_back(stranger(second.address(), bytes_of({})));
  strangers.push_back(stranger(second.address(), bytes_of({of_the_path[0], of_the_path[1] ^ 1U})));
  strangers.push_back(stranger(second.address(), bytes_of({of_the_path[0] ^ 1U, of_the_path[1]})));
  strangers.push_back(stranger(second.address(), half));
  strangers.push_back(stranger(second.address(), {}));
  std::jthread accepting([&] { second.meet(first.address()); });
  first.meet(second.address());
  accepting.join();
  const std::vector<std::byte> sent(64, std::byte{7});
  std::vector<std::byte> received(sent.size());
  first.send(sent);
  EXPECT_TRUE(second.receive(received));
  EXPECT_EQ(received, sent);
}

TEST(Tcp, APathThatIsCutLetsNeitherASenderWaitNorGoOn) {
  const Attachment attachment = over_the_loopback();
  Tcp<Receive::blocking> first(attachment, {.secret = of_the_path, .is_first = true});
  Tcp<Receive::blocking> second(attachment, {.secret = of_the_path});
  {
    std::jthread accepting([&] { second.meet(first.address()); });
    first.meet(second.address());
  }
  std::vector<std::byte> message(1U << 20U);
  std::jthread cutting([&] {
    EXPECT_TRUE(second.receive(message));
    usleep(50'000);  // the sender has filled what the kernel holds, and sleeps
    second.cut();
  });
  const std::vector<std::byte> sent(message.size());
  const std::uint64_t begin = Clock::now();
  EXPECT_THROW(for (;;) first.send(sent), Failure);
  EXPECT_LT(Clock::now() - begin, std::uint64_t{5'000'000'000}) << "not by the bound of a silent peer";
}

TEST(Tcp, AStrangerWhoIsAloneThereEndsTheWaitAndNothingElse) {
  const Attachment attachment = over_the_loopback();
  Tcp<Receive::blocking> second(attachment, {.secret = of_the_path});
  const Descriptor one = stranger(second.address(), bytes_of({1, 1}));
  try {
    second.meet("127.0.0.1:0");
    FAIL() << "it was let in";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), FailureCode::timeout);
  }
}

}  // namespace
}  // namespace fabricbench
