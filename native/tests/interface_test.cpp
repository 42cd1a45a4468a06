#include "base/interface.hpp"

#include <gtest/gtest.h>

namespace fabricbench {
namespace {

TEST(Interface, SubnetsAreReadAndNothingElseIs) {
  const auto subnet = parse_subnet("10.98.1.7/24");
  ASSERT_TRUE(subnet);
  EXPECT_EQ(address_text(subnet->network), "10.98.1.0");
  EXPECT_EQ(address_text(subnet->mask), "255.255.255.0");
  EXPECT_EQ(parse_subnet("0.0.0.0/0")->mask, 0U);
  for (const auto* text : {"10.98.1.0", "10.98.1.0/", "10.98.1.0/33", "10.98.1.0/2x", "10.98.1/24", "::1/64", ""}) {
    EXPECT_FALSE(parse_subnet(text)) << text;
  }
}

TEST(Interface, TheLoopbackIsFoundByNameAndBySubnet) {
  const auto by_name = find_interface("lo", std::nullopt);
  const auto by_subnet = find_interface(std::nullopt, parse_subnet("127.0.0.0/8"));
  if (!by_subnet) GTEST_SKIP() << "this host has no loopback";
  ASSERT_TRUE(by_name);
  EXPECT_EQ(by_name->name, by_subnet->name);
  EXPECT_EQ(by_name->index, by_subnet->index);
  EXPECT_GE(by_name->mtu, 1500);
  EXPECT_EQ(mac_text(by_name->mac), "00:00:00:00:00:00");
}

TEST(Interface, WhatIsNotThereIsNotFound) {
  EXPECT_FALSE(find_interface("no-such-thing0", std::nullopt));
  EXPECT_FALSE(find_interface(std::nullopt, parse_subnet("255.255.255.255/32")));
  EXPECT_FALSE(find_interface(std::nullopt, std::nullopt));
}

}  // namespace
}  // namespace fabricbench
