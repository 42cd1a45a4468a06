// What of layer rdma needs no adapter: which port is found on file systems that are made up, and what is said where
// there is none. Where the header of libibverbs is installed, our own declarations are compared with it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "rdma/library.hpp"
#include "rdma/manager.hpp"
#include "rdma/port.hpp"
#include "rdma/queue_pair.hpp"

#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#define SAME(ours, our_field, theirs, their_field)                                                \
  static_assert(offsetof(fabricbench::verbs::ours, our_field) == offsetof(theirs, their_field) && \
                sizeof(fabricbench::verbs::ours::our_field) == sizeof(theirs::their_field))
SAME(DeviceAttributes, max_requests, ibv_device_attr, max_qp_wr);
SAME(DeviceAttributes, max_completions, ibv_device_attr, max_cqe);
SAME(DeviceAttributes, max_reads_in, ibv_device_attr, max_qp_rd_atom);
SAME(DeviceAttributes, ports, ibv_device_attr, phys_port_cnt);
SAME(PortAttributes, lid, ibv_port_attr, lid);
SAME(PortAttributes, max_message_bytes, ibv_port_attr, max_msg_sz);
SAME(SendRequest, immediate, ibv_send_wr, imm_data);
SAME(SendRequest, flags, ibv_send_wr, send_flags);
SAME(QueuePair, number, ibv_qp, qp_num);
SAME(CompletionQueue, entries, ibv_cq, cqe);
SAME(CompletionChannel, descriptor, ibv_comp_channel, fd);
SAME(Context, operations, ibv_context, ops);
SAME(QueuePairAttributes, rate_limit, ibv_qp_attr, rate_limit);
SAME(QueuePairAttributes, address, ibv_qp_attr, ah_attr);
SAME(Completion, flags, ibv_wc, wc_flags);
SAME(Context, event_descriptor, ibv_context, async_fd);
SAME(AsyncEvent, kind, ibv_async_event, event_type);
static_assert(sizeof(fabricbench::verbs::AsyncEvent) == sizeof(ibv_async_event));
#define SAME_EVENT_KIND(ours, theirs) \
  static_assert(static_cast<int>(fabricbench::verbs::AsyncEventKind::ours) == IBV_EVENT_##theirs)
SAME_EVENT_KIND(completion_queue_error, CQ_ERR);
SAME_EVENT_KIND(queue_pair_fatal, QP_FATAL);
SAME_EVENT_KIND(device_fatal, DEVICE_FATAL);
SAME_EVENT_KIND(port_error, PORT_ERR);
SAME_EVENT_KIND(lid_change, LID_CHANGE);
SAME_EVENT_KIND(gid_change, GID_CHANGE);
SAME_EVENT_KIND(work_queue_fatal, WQ_FATAL);
static_assert(sizeof(fabricbench::verbs::PortAttributes) == sizeof(ibv_port_attr));
static_assert(sizeof(fabricbench::verbs::SendRequest) == sizeof(ibv_send_wr));
static_assert(sizeof(fabricbench::verbs::Completion) == sizeof(ibv_wc));
static_assert(sizeof(fabricbench::verbs::QueuePairSetup) == sizeof(ibv_qp_init_attr));
static_assert(sizeof(fabricbench::verbs::QueuePairAttributes) == sizeof(ibv_qp_attr));
#endif

#if __has_include(<rdma/rdma_cma.h>)
#include <rdma/rdma_cma.h>
static_assert(offsetof(fabricbench::verbs::EventChannel, descriptor) == offsetof(rdma_event_channel, fd));
static_assert(offsetof(fabricbench::verbs::Identifier, verbs) == offsetof(rdma_cm_id, verbs));
static_assert(offsetof(fabricbench::verbs::Identifier, channel) == offsetof(rdma_cm_id, channel));
static_assert(offsetof(fabricbench::verbs::Identifier, user) == offsetof(rdma_cm_id, context));
static_assert(offsetof(fabricbench::verbs::Identifier, pair) == offsetof(rdma_cm_id, qp));
#define SAME_PARAMETER(ours, theirs)                                                                             \
  static_assert(offsetof(fabricbench::verbs::ConnectionParameters, ours) == offsetof(rdma_conn_param, theirs) && \
                sizeof(fabricbench::verbs::ConnectionParameters::ours) == sizeof(rdma_conn_param::theirs))
SAME_PARAMETER(data, private_data);
SAME_PARAMETER(data_bytes, private_data_len);
SAME_PARAMETER(reads_in, responder_resources);
SAME_PARAMETER(reads_out, initiator_depth);
SAME_PARAMETER(flow_control, flow_control);
SAME_PARAMETER(retries, retry_count);
SAME_PARAMETER(receiver_retries, rnr_retry_count);
SAME_PARAMETER(has_shared_receive_queue, srq);
SAME_PARAMETER(pair_number, qp_num);
static_assert(sizeof(fabricbench::verbs::ConnectionParameters) == sizeof(rdma_conn_param));
static_assert(offsetof(fabricbench::verbs::Event, listener) == offsetof(rdma_cm_event, listen_id));
static_assert(offsetof(fabricbench::verbs::Event, kind) == offsetof(rdma_cm_event, event));
static_assert(offsetof(fabricbench::verbs::Event, status) == offsetof(rdma_cm_event, status));
static_assert(offsetof(fabricbench::verbs::Event, parameters) == offsetof(rdma_cm_event, param));
static_assert(sizeof(fabricbench::verbs::Event) <= sizeof(rdma_cm_event));  // we copy no more than there is
static_assert(fabricbench::verbs::port_space_of_streams == RDMA_PS_TCP);
#define SAME_EVENT(ours, theirs) \
  static_assert(static_cast<int>(fabricbench::verbs::EventKind::ours) == RDMA_CM_EVENT_##theirs)
SAME_EVENT(connect_request, CONNECT_REQUEST);
SAME_EVENT(unreachable, UNREACHABLE);
SAME_EVENT(established, ESTABLISHED);
SAME_EVENT(disconnected, DISCONNECTED);
SAME_EVENT(time_wait_over, TIMEWAIT_EXIT);
#endif

namespace fabricbench {
namespace {

namespace fs = std::filesystem;

constexpr const char* gid_of_10_1_0_1 = "0000:0000:0000:0000:0000:ffff:0a01:0001";
constexpr const char* link_local_gid = "fe80:0000:0000:0000:0000:00ff:fe00:0101";

class RdmaOfHost : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("rdma." + std::to_string(getpid()) + "." + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  void port(const std::string& device, int number, const std::string& link_layer,
            const std::string& node_type = "1: CA") const {
    const std::string folder = "sys/class/infiniband/" + device;
    write(folder + "/node_type", node_type);
    write(folder + "/ports/" + std::to_string(number) + "/link_layer", link_layer);
    write(folder + "/ports/" + std::to_string(number) + "/state", "4: ACTIVE");
  }
  void gid(const std::string& device, int index, const std::string& gid, const std::string& type,
           const std::string& netdev) const {
    const std::string port = "sys/class/infiniband/" + device + "/ports/1/";
    write(port + "gids/" + std::to_string(index), gid);
    write(port + "gid_attrs/types/" + std::to_string(index), type);
    write(port + "gid_attrs/ndevs/" + std::to_string(index), netdev);
  }
  void roce(const std::string& device, const std::string& netdev) const {
    port(device, 1, "Ethernet");
    gid(device, 0, link_local_gid, "IB/RoCE v1", netdev);
    gid(device, 1, link_local_gid, "RoCE v2", netdev);
    gid(device, 2, gid_of_10_1_0_1, "IB/RoCE v1", netdev);
    gid(device, 3, gid_of_10_1_0_1, "RoCE v2", netdev);
  }
  static Interface interface(const std::string& name) {
    Interface found;
    found.name = name;
    found.address = 0x0a010001;
    return found;
  }
  std::string why(const RdmaEnd& wanted, const std::optional<Interface>& interface) const {
    try {
      find_rdma_port(wanted, interface, root_);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "it was found";
  }

  fs::path root_;
};

TEST_F(RdmaOfHost, ThePortOfTheInterfaceIsTakenWithItsAddressOfRoceVersion2) {
  roce("mlx5_0", "eth0");
  roce("mlx5_1", "eth1");
  const RdmaPort port = find_rdma_port({}, interface("eth1"), root_);
  EXPECT_EQ(port.device, "mlx5_1");
  EXPECT_EQ(port.number, 1);
  EXPECT_TRUE(port.is_ethernet);
  EXPECT_EQ(port.gid_index, 3);
  EXPECT_EQ(gid_text(port.gid), gid_of_10_1_0_1);
}

TEST_F(RdmaOfHost, APortSaysWhatItSpeaksAndWhatDrivesIt) {
  roce("mlx5_1", "eth1");
  fs::create_directories(root_ / "sys/class/infiniband/mlx5_1/device");
  fs::create_directories(root_ / "sys/bus/drivers/mlx5_core");
  fs::create_symlink(root_ / "sys/bus/drivers/mlx5_core", root_ / "sys/class/infiniband/mlx5_1/device/driver");
  const RdmaPort roce_port = find_rdma_port({}, interface("eth1"), root_);
  EXPECT_EQ(roce_port.transport(), RdmaTransport::roce_v2);
  EXPECT_EQ(roce_port.driver, "mlx5_core");
  EXPECT_EQ(roce_port.netdev, "eth1");
  EXPECT_EQ(find_rdma_port({.device = "mlx5_1", .port = {}, .gid_index = 2}, {}, root_).transport(),
            RdmaTransport::roce_v1);
  roce("rxe0", "eth0");
  write("sys/class/infiniband/rxe0/parent", "eth0");
  EXPECT_EQ(find_rdma_port({}, interface("eth0"), root_).driver, "rxe");
  port("siw0", 1, "Ethernet", "4: RNIC");
  gid("siw0", 0, "0200:0a01:0001:0000:0000:0000:0000:0000", "", "");
  const RdmaPort iwarp = find_rdma_port({.device = "siw0", .port = {}, .gid_index = {}}, {}, root_);
  EXPECT_EQ(iwarp.transport(), RdmaTransport::iwarp);
  EXPECT_EQ(iwarp.driver, "siw");
}

TEST_F(RdmaOfHost, AnIndexOfAnAddressBeyondWhatLibibverbsTakesIsRefused) {
  roce("mlx5_1", "eth1");
  const std::string said = why({.device = "mlx5_1", .port = {}, .gid_index = 300}, interface("eth1"));
  EXPECT_NE(said.find("0 to 255, and the testbed names 300"), std::string::npos) << said;
}

TEST_F(RdmaOfHost, RoceVersion1IsTakenWhereThereIsNoOther) {
  port("mlx4_0", 1, "Ethernet");
  gid("mlx4_0", 0, link_local_gid, "IB/RoCE v1", "eth0");
  gid("mlx4_0", 5, gid_of_10_1_0_1, "IB/RoCE v1", "eth0");
  EXPECT_EQ(find_rdma_port({}, interface("eth0"), root_).gid_index, 5);
}

TEST_F(RdmaOfHost, InfinibandIsFoundByTheFunctionThatBothBelongTo) {
  port("mlx5_0", 1, "InfiniBand");
  gid("mlx5_0", 0, link_local_gid, "IB/RoCE v1", "");
  fs::create_directories(root_ / "sys/class/net/ib0/device/infiniband/mlx5_0");
  const RdmaPort port = find_rdma_port({}, interface("ib0"), root_);
  EXPECT_EQ(port.device, "mlx5_0");
  EXPECT_FALSE(port.is_ethernet);
}

TEST_F(RdmaOfHost, WhatTheTestbedNamesIsTaken) {
  roce("mlx5_0", "eth0");
  roce("mlx5_1", "eth1");
  const RdmaEnd wanted{.device = "mlx5_0", .port = 1, .gid_index = 2};
  const RdmaPort port = find_rdma_port(wanted, interface("eth1"), root_);
  EXPECT_EQ(port.device, "mlx5_0");
  EXPECT_EQ(port.gid_index, 2);
}

TEST_F(RdmaOfHost, WhatIsNotThereIsToldWithWhatIs) {
  roce("mlx5_0", "eth0");
  const std::string there = "this host has mlx5_0/1 (RoCE over eth0)";
  EXPECT_NE(why({}, interface("eth7")).find("belongs to interface eth7: " + there), std::string::npos);
  EXPECT_NE(why({.device = "mlx5_9"}, {}).find("no RDMA device mlx5_9, which the testbed names: " + there),
            std::string::npos);
  EXPECT_NE(why({.gid_index = 9}, interface("eth0")).find("has no address (GID) 9; it has 0, 1, 2, 3"),
            std::string::npos);
  EXPECT_NE(why({}, {}).find("name the device there (rdma.device); " + there), std::string::npos);
}

TEST_F(RdmaOfHost, APortThatIsDownIsRefused) {
  roce("mlx5_0", "eth0");
  write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  EXPECT_NE(why({}, interface("eth0")).find("mlx5_0/1 is not active (1: DOWN)"), std::string::npos);
}

TEST_F(RdmaOfHost, IwarpIsToldApart) {
  port("siw1", 1, "Ethernet", "4: RNIC");
  gid("siw1", 0, link_local_gid, "IB/RoCE v1", "");
  EXPECT_TRUE(find_rdma_port({.device = "siw1"}, {}, root_).is_iwarp);
}

TEST_F(RdmaOfHost, APortOfIwarpBelongsToTheInterfaceWhoseMacAddressItHas) {
  port("siw1", 1, "Ethernet", "4: RNIC");
  gid("siw1", 0, "0200:0000:0101:0000:0000:0000:0000:0000", "IB/RoCE v1", "");
  port("siw2", 1, "Ethernet", "4: RNIC");
  gid("siw2", 0, "0200:0000:0102:0000:0000:0000:0000:0000", "IB/RoCE v1", "");
  write("sys/class/net/h1/address", "02:00:00:00:01:01");
  write("sys/class/net/h2/address", "02:00:00:00:01:02");
  EXPECT_EQ(find_rdma_port({}, interface("h2"), root_).device, "siw2");
  EXPECT_NE(why({}, interface("h3")).find("siw1/1 (iWARP over h1), siw2/1 (iWARP over h2)"), std::string::npos);
}

TEST_F(RdmaOfHost, EachWayOfHavingNoDeviceHasAMessageOfItsOwn) {
  const auto message = [&] { return std::string(verbs::why_no_device(root_).what()); };
  EXPECT_NE(message().find("this kernel has no support for RDMA"), std::string::npos);
  fs::create_directories(root_ / "sys/class/infiniband");
  EXPECT_NE(message().find("no RDMA device, though its kernel supports them"), std::string::npos);
  fs::create_directories(root_ / "sys/class/infiniband/mlx5_0");
  EXPECT_NE(message().find("load its module ib_uverbs"), std::string::npos);
  fs::create_directories(root_ / "sys/class/infiniband_verbs/uverbs0");
  EXPECT_NE(message().find("libibverbs has no provider for it"), std::string::npos);
  EXPECT_NE(message().find("IBV_DRIVERS"), std::string::npos);
}

TEST(QueuePairAddress, IsReadAsItWasWritten) {
  QueuePairAddress address{
      .number = 17, .first_packet = 0xfab1, .lid = 3, .mtu = 4096, .memory = 1ULL << 47U, .port = 40123};
  address.gid = *parse_gid(gid_of_10_1_0_1);
  address.memory_key = 0xffffffff;
  const QueuePairAddress read = QueuePairAddress::parse(address.text());
  EXPECT_EQ(read.text(), address.text());
  EXPECT_EQ(read.gid, address.gid);
  EXPECT_EQ(read.port, 40123);
  EXPECT_EQ(gid_of_ipv4(0x0a010001), address.gid);
  EXPECT_EQ(ipv4_of(address.gid), 0x0a010001U);
  EXPECT_THROW(QueuePairAddress::parse("10.98.1.2:40123"), Failure);
}

TEST(Introduction, OfAStrangerIsNone) {
  const Introduction own{.address = 1ULL << 47U, .key = 7, .secret = {0xfab1, 17}};
  verbs::ConnectionParameters told{};
  told.data = &own;
  told.data_bytes = sizeof own;
  ASSERT_TRUE(Introduction::read(told));
  EXPECT_EQ(Introduction::read(told)->secret, own.secret);
  told.data_bytes = sizeof own - 1;
  EXPECT_FALSE(Introduction::read(told));
  told.data = nullptr;
  EXPECT_FALSE(Introduction::read(told));
  const std::array<char, sizeof own> noise{'G', 'E', 'T'};
  told.data = noise.data();
  told.data_bytes = sizeof noise;
  EXPECT_FALSE(Introduction::read(told));
}

TEST(EventKind, IsToldByItsName) {
  EXPECT_EQ(name_of(verbs::EventKind::unreachable), "RDMA_CM_EVENT_UNREACHABLE");
  EXPECT_NE(meaning_of(verbs::EventKind::rejected).find("wants no connection"), std::string::npos);
  EXPECT_EQ(name_of(static_cast<verbs::EventKind>(99)), "an event of its own");
}

TEST(CompletionStatus, IsToldByItsName) {
  try {
    verbs::fail_with_status(verbs::Status::retry_exceeded, "a message");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), FailureCode::unreachable);
    EXPECT_NE(std::string(failure.what()).find("IBV_WC_RETRY_EXC_ERR, 12"), std::string::npos);
  }
  EXPECT_THROW(verbs::fail_with_status(verbs::Status::remote_access, "a message"), Failure);
}

}  // namespace
}  // namespace fabricbench
