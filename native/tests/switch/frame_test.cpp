#include "switch/frame.hpp"

#include <gtest/gtest.h>

#include <array>

namespace fabricbench::emulated_switch {
namespace {

constexpr std::array<std::uint8_t, 14> kToSecond = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0};
constexpr std::array<std::uint8_t, 14> kToAll = {255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6};
constexpr Mac kSecond = 0x020000000002;  // read from its last byte to its first

TEST(Forwarding, FindsThePortOfAKnownAddress) {
  ForwardingTable table;
  EXPECT_TRUE(table.learn(kSecond, 1));
  EXPECT_EQ(table.port_of(kToSecond.data()), 1U);
}

TEST(Forwarding, FloodsBroadcastAndUnknownAddresses) {
  ForwardingTable table;
  EXPECT_EQ(table.port_of(kToSecond.data()), std::nullopt);
  table.learn(kSecond, 1);
  EXPECT_EQ(table.port_of(kToAll.data()), std::nullopt);
}

TEST(Forwarding, AnAddressIsBehindOnePortOnly) {
  ForwardingTable table;
  EXPECT_TRUE(table.learn(kSecond, 1));
  EXPECT_FALSE(table.learn(kSecond, 2));
}

}  // namespace
}  // namespace fabricbench::emulated_switch
