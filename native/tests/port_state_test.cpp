#include "core/port_state.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/report.hpp"
#include "tests/merging.hpp"

namespace fabricbench {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// A file system with the ports of a host, gone at the end of the test.
class PortsOfHost : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("ports." + std::to_string(getpid()) + "." + testing::UnitTest::GetInstance()->current_test_info()->name());
    write("proc/net/dev", "Inter-|   Receive\n face |bytes\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  static std::string port(const std::string& device, int number) {
    return "sys/class/infiniband/" + device + "/ports/" + std::to_string(number) + "/";
  }
  /// A port of RDMA over Ethernet beside an interface.
  void roce(const std::string& device, int number, const std::string& interface) const {
    write(port(device, number) + "gid_attrs/ndevs/0", interface);
  }

  FabricPorts ports_of(const std::optional<Interface>& interface, const RdmaEnd& wanted) const {
    InterfacesAbove above(root_);
    return find_ports(interface, wanted, above, root_);
  }

  fs::path root_;
};

Interface named(const std::string& name) {
  Interface interface;
  interface.name = name;
  return interface;
}

TEST_F(PortsOfHost, ThoseOfAFabricAreBesideItsInterface) {
  roce("rxe0", 1, "fe0");
  roce("rxe1", 1, "fe1");
  write(port("rxe1", 1) + "gid_attrs/ndevs/1", "fe1.7");
  const FabricPorts found = ports_of(named("fe1"), {});
  EXPECT_EQ(found.ports, Names{"rxe1/1"});
  EXPECT_EQ(found.interfaces, (Names{"fe1", "fe1.7"}));
  EXPECT_TRUE(ports_of(named("eth9"), {}).ports.empty());
  EXPECT_TRUE(ports_of({}, {}).ports.empty());
}

TEST_F(PortsOfHost, WithoutRdmaTheInterfaceOfTheFabricIsItsPort) {
  roce("rxe0", 1, "fe0");
  EXPECT_EQ(ports_of(named("eth9"), {}).interfaces, Names{"eth9"});
  EXPECT_TRUE(ports_of({}, {}).interfaces.empty());
  EXPECT_TRUE(ports_of(named("eth9"), {.device = "mlx5_7", .port = {}, .gid_index = {}}).interfaces.empty());
}

TEST_F(PortsOfHost, TheOneThatThePlanNamesIsTheFabricsWhateverLiesBeside) {
  roce("mlx5_0", 1, "fe0");
  roce("mlx5_0", 2, "fe1");
  EXPECT_EQ(ports_of(named("fe0"), {.device = "mlx5_0", .port = 2, .gid_index = {}}).ports, Names{"mlx5_0/2"});
  EXPECT_EQ(ports_of({}, {.device = "mlx5_0", .port = {}, .gid_index = {}}).ports, (Names{"mlx5_0/1", "mlx5_0/2"}));
  EXPECT_TRUE(ports_of(named("fe0"), {.device = "mlx5_7", .port = {}, .gid_index = {}}).ports.empty());
}

TEST_F(PortsOfHost, WhatChangedIsToldByTheCountersOwnNames) {
  const FabricPorts of{.ports = {"mlx5_0/1"}, .interfaces = {}};
  const std::string counters = port("mlx5_0", 1) + "counters/";
  const std::string hardware = port("mlx5_0", 1) + "hw_counters/";
  write(counters + "port_xmit_wait", "5");
  write(counters + "port_xmit_data", "1000");
  write(counters + "port_rcv_errors", "7");
  write(hardware + "out_of_sequence", "10");
  write(hardware + "packet_seq_err", "3");
  write(hardware + "lifespan", "10");
  const PortState before = read_port_state(of, root_);
  write(counters + "port_xmit_wait", "9");
  write(counters + "port_xmit_data", "9000");
  write(counters + "port_rcv_errors", "2");  // somebody has reset it
  write(hardware + "out_of_sequence", "14");
  write(hardware + "lifespan", "20");
  const PortState changes = changes_between(before, read_port_state(of, root_));
  EXPECT_EQ(changes, (PortState{{"mlx5_0/1", {{"out_of_sequence", 4}, {"port_xmit_wait", 4}}}}));
}

TEST_F(PortsOfHost, APortOnWhichNothingChangedIsThereAndOneWithoutCountersIsNot) {
  write(port("rxe0", 1) + "hw_counters/sent_pkts", "5");
  roce("siw0", 1, "fe0");
  const FabricPorts of{.ports = {"rxe0/1", "siw0/1", "gone0/1"}, .interfaces = {"no-such-interface"}};
  const PortState state = read_port_state(of, root_);
  EXPECT_EQ(changes_between(state, state), (PortState{{"rxe0/1", {}}}));
  EXPECT_EQ(changes_between({}, state), PortState{});
}

TEST(PortState, OfADriversStatisticsThoseOfTheLinkAreRead) {
  for (const std::string name :
       {"rx_prio3_pause", "tx_global_pause", "rx_pause_ctrl_phy", "tx_prio0_bytes", "rx_discards_phy", "rx_ecn_mark",
        "tx_pfc_frames", "rp_cnp_handled", "rx_crc_errors_phy", "rx_out_of_buffer", "port.link_xoff_rx", "tx_dropped",
        "rx_icrc_encapsulated_errors"}) {
    EXPECT_TRUE(is_of_link(name)) << name;
  }
  for (const std::string name :
       {"rx_packets", "tx0_bytes", "rx12_xdp_drop", "tx_queue_0_drops", "rx_queue_3_drops", "peer_ifindex", ""}) {
    EXPECT_FALSE(is_of_link(name)) << name;
  }
}

TEST(PortState, AnInterfaceWithoutDriverHasNoStatistics) {
  EXPECT_TRUE(read_driver_statistics("lo").empty());
  EXPECT_TRUE(read_driver_statistics("no-such-interface").empty());
  EXPECT_TRUE(read_driver_statistics(std::string(100, 'x')).empty());
}

CellReport on(const std::string& host, const PortState& state) {
  CellReport report;
  report.port_state[host] = state;
  return report;
}

TEST(PortState, EachHostsIsKeptApartAndRanksOfOneHostAddPortsAndCountNothingTwice) {
  const PortState first{{"rxe0/1", {{"sent_pkts", 5}}}};
  const CellReport merged = merge({on("n0", first), CellReport::unpack(on("n1", first).pack()),
                                   on("n0", {{"rxe0/1", {{"sent_pkts", 6}}}, {"rxe1/1", {}}})},
                                  Family::pair);
  EXPECT_EQ(merged.port_state, (PortStates{{"n0", {{"rxe0/1", {{"sent_pkts", 5}}}, {"rxe1/1", {}}}}, {"n1", first}}));
}

}  // namespace
}  // namespace fabricbench
