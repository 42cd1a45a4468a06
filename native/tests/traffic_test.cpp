#include "core/traffic.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fabricbench {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// A file system in which a host's counters stand, gone at the end of the test.
class TrafficOfHost : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("traffic." + std::to_string(getpid()) + "." +
                                            testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  /// Counts of network interfaces as the kernel shows them: sent and received.
  void netdevs(const std::vector<std::tuple<std::string, int, int>>& counts) const {
    std::string text = "Inter-|   Receive\n face |bytes\n";
    for (const auto& [name, sent, received] : counts) {
      text += name + ": " + std::to_string(received) + " 0 0 0 0 0 0 0 " + std::to_string(sent) + " 0 0 0 0 0 0 0\n";
      fs::create_directories(root_ / "sys/class/net" / name);
    }
    write("proc/net/dev", text);
  }
  void lies_over(const std::string& lower, const std::string& upper) const {
    write("sys/class/net/" + lower + "/upper_" + upper, "");
  }
  void rdma_port(const std::string& device, int port, int sent_words, int received_words) const {
    const std::string counters = "sys/class/infiniband/" + device + "/ports/" + std::to_string(port) + "/counters/";
    write(counters + "port_xmit_data", std::to_string(sent_words));
    write(counters + "port_rcv_data", std::to_string(received_words));
  }

  Traffic since(const Traffic& before) const {
    Traffic carried = traffic_between(before, read_traffic_counters(root_));
    InterfacesAbove above(root_);
    note_above(carried, above);
    return carried;
  }

  fs::path root_;
};

TEST(Traffic, CountersAreReadFromTheKernelsTable) {
  const auto counters = parse_netdev_counters(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls "
      "carrier\n"
      "    lo:  123456      12    0    0    0     0          0         0   654321      21    0    0    0     0       "
      "0\n"
      "fe0:99 1 0 0 0 0 0 0 77 1 0 0 0 0 0 0\n");
  ASSERT_EQ(counters.size(), 2U);
  EXPECT_EQ(counters.at("lo").received, 123456U);
  EXPECT_EQ(counters.at("lo").sent, 654321U);
  EXPECT_EQ(counters.at("fe0").received, 99U);
  EXPECT_EQ(counters.at("fe0").sent, 77U);
}

TEST_F(TrafficOfHost, ABondsTrafficIsCountedByItsCardsAsWell) {
  netdevs({{"eth0", 10, 20}, {"bond0", 0, 0}, {"bond0.7", 0, 0}, {"eth1", 0, 0}});
  lies_over("eth0", "bond0");
  lies_over("bond0", "bond0.7");
  const Traffic before = read_traffic_counters(root_);
  netdevs({{"eth0", 110, 220}, {"bond0", 0, 0}, {"bond0.7", 90, 180}, {"eth1", 1, 1}});
  const Traffic counted = since(before);
  EXPECT_EQ(counted.at("eth0").sent, 100U);
  EXPECT_EQ(counted.at("eth0").received, 200U);
  EXPECT_EQ(counted.at("eth0").above, (Names{"bond0", "bond0.7"}));
  EXPECT_EQ(counted.at("bond0").above, Names{"bond0.7"});
  EXPECT_TRUE(counted.at("eth1").above.empty());
}

TEST_F(TrafficOfHost, PortsOfRdmaDevicesCountOctetsByFour) {
  netdevs({{"ib0", 10, 10}});
  rdma_port("mlx5_0", 1, 1000, 2000);
  fs::create_directories(root_ / "sys/class/net/ib0/device/infiniband/mlx5_0");
  const Traffic before = read_traffic_counters(root_);
  rdma_port("mlx5_0", 1, 1250, 2500);
  const InterfaceBytes port = since(before).at("mlx5_0/1");
  EXPECT_EQ(port.sent, 1000U);
  EXPECT_EQ(port.received, 2000U);
  EXPECT_EQ(port.above, Names{"ib0"});
  EXPECT_TRUE(port.is_counted);
}

TEST_F(TrafficOfHost, APortIsCountedWhereverItsDriverCounts) {
  netdevs({});
  const std::string ports = "sys/class/infiniband/";
  const auto count = [&](std::uint64_t bytes) {
    const std::string text = std::to_string(bytes);
    for (const std::string name : {"tx_bytes", "rx_bytes"}) write(ports + "efa_0/ports/1/hw_counters/" + name, text);
    for (const std::string name : {"ip4OutOctets", "ip6OutOctets", "ip4InOctets", "ip6InOctets"}) {
      write(ports + "irdma0/ports/1/hw_counters/" + name, text);
    }
    write(ports + "mlx4_0/ports/1/counters_ext/port_xmit_data_64", text);
    write(ports + "mlx4_0/ports/1/counters_ext/port_rcv_data_64", text);
  };
  count(100);
  rdma_port("mlx4_0", 1, 7, 7);
  const Traffic before = read_traffic_counters(root_);
  count(350);
  const Traffic counted = since(before);
  EXPECT_EQ(counted.at("efa_0/1").sent, 250U);
  EXPECT_EQ(counted.at("irdma0/1").received, 500U);
  EXPECT_EQ(counted.at("mlx4_0/1").sent, 1000U);
  for (const char* const port : {"efa_0/1", "irdma0/1", "mlx4_0/1"}) EXPECT_TRUE(counted.at(port).is_counted) << port;
}

TEST_F(TrafficOfHost, ACounterAtTheEndOfIts32BitsCountsNothingThatCanBeTold) {
  netdevs({});
  const std::string counters = "sys/class/infiniband/mthca0/ports/1/counters/";
  for (const std::string before_text : {"4294967290", "4294967295"}) {
    write(counters + "port_xmit_data", before_text);
    write(counters + "port_rcv_data", "5");
    const Traffic before = read_traffic_counters(root_);
    write(counters + "port_xmit_data", "4294967295");
    EXPECT_FALSE(since(before).at("mthca0/1").is_counted) << before_text;
  }
}

TEST_F(TrafficOfHost, APortOfTwoHasTheInterfaceOfItsNumber) {
  netdevs({{"ib0", 0, 0}, {"ib1", 0, 0}, {"eth7", 0, 0}});
  for (const int port : {1, 2}) rdma_port("mlx4_0", port, 0, 0);
  for (const auto& [name, position] : {std::pair("ib0", "0"), std::pair("ib1", "1")}) {
    fs::create_directories(root_ / "sys/class/net" / name / "device/infiniband/mlx4_0");
    write(std::string("sys/class/net/") + name + "/dev_port", position);
  }
  write("sys/class/infiniband/mlx4_0/ports/2/gid_attrs/ndevs/3", "eth7");  // RoCE has a GID of an interface above
  const Traffic counted = since(read_traffic_counters(root_));
  EXPECT_EQ(counted.at("mlx4_0/1").above, Names{"ib0"});
  EXPECT_EQ(counted.at("mlx4_0/2").above, (Names{"eth7", "ib1"}));
}

TEST_F(TrafficOfHost, WhatLiesAboveACounterIsLookedUpOnce) {
  netdevs({{"eth0", 0, 0}, {"eth1", 0, 0}});
  write("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0");
  InterfacesAbove above(root_);
  EXPECT_EQ(above.of("rxe0/1"), Names{"eth0"});
  EXPECT_TRUE(above.of("eth1").empty());
  write("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/1", "eth1");
  EXPECT_EQ(above.of("rxe0/1"), Names{"eth0"});
  EXPECT_EQ(InterfacesAbove(root_).of("rxe0/1"), (Names{"eth0", "eth1"}));
}

TEST_F(TrafficOfHost, APortWithoutCountersIsThereAndUncounted) {
  netdevs({{"eth0", 0, 0}});
  write("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0");
  const InterfaceBytes port = since(read_traffic_counters(root_)).at("rxe0/1");
  EXPECT_FALSE(port.is_counted);
  EXPECT_EQ(port.above, Names{"eth0"});
}

TEST_F(TrafficOfHost, ACounterThatWasResetHasCountedNothing) {
  netdevs({{"eth0", 1000, 1000}});
  const Traffic before = read_traffic_counters(root_);
  netdevs({{"eth0", 10, 2000}});
  const InterfaceBytes counted = since(before).at("eth0");
  EXPECT_FALSE(counted.is_counted);
  EXPECT_EQ(counted.sent, 0U);
  EXPECT_EQ(counted.received, 0U);
}

TEST_F(TrafficOfHost, AHostThatShowsNothingHasNoCounters) { EXPECT_TRUE(read_traffic_counters(root_).empty()); }

TEST(Traffic, SpansAddUpAndOneThatIsUncountedStaysSo) {
  Traffic total;
  add_traffic(total, {{"ib0", {.sent = 1, .received = 2, .above = {"bond0"}}}});
  add_traffic(total, {{"ib0", {.sent = 10, .received = 20, .above = {"bond0"}}}});
  EXPECT_EQ(total.at("ib0").sent, 11U);
  EXPECT_EQ(total.at("ib0").received, 22U);
  EXPECT_EQ(total.at("ib0").above, Names{"bond0"});
  add_traffic(total, {{"ib0", {.is_counted = false}}});
  add_traffic(total, {{"ib0", {.sent = 1}}});
  EXPECT_FALSE(total.at("ib0").is_counted);
}

TEST(Traffic, LinesHaveWhatIsUnusualOnly) {
  using nlohmann::json;
  const json plain = InterfaceBytes{.sent = 1, .received = 2};
  EXPECT_EQ(plain, json::parse(R"({"sent": 1, "received": 2})"));
  const InterfaceBytes rare{.sent = 1, .received = 2, .above = {"ib0"}, .is_counted = false};
  const auto again = json(rare).get<InterfaceBytes>();
  EXPECT_EQ(again.above, rare.above);
  EXPECT_FALSE(again.is_counted);
}

}  // namespace
}  // namespace fabricbench
