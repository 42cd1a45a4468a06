#include "core/counters.hpp"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"

namespace fabricbench {
namespace {

namespace fs = std::filesystem;

/// The files of a host, gone at the end of the test.
class HostFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("host." + std::to_string(getpid()) + "." + testing::UnitTest::GetInstance()->current_test_info()->name());
    write("proc/thread-self/net/snmp",
          "Ip: Forwarding InDiscards OutDiscards ReasmFails\nIp: 1 2 3 4\n"
          "Tcp: MaxConn InSegs OutSegs RetransSegs\nTcp: -1 100 90 7\n"
          "Udp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 50 5 6\n");
    write("proc/thread-self/net/netstat",
          "TcpExt: PruneCalled DelayedACKs TCPTimeouts TCPBacklogDrop\nTcpExt: 1 8 2 10\nIpExt: InOctets\nIpExt: 9\n");
    write("proc/stat",
          "cpu  10 20 30 1000 5 2 3 4 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 900 0 11 0 13 0 17\nctxt 77\nbtime 1\n"
          "softirq 600 1 2 40 50 0 0 0 0 0 0\n");
    for (const char* name : {"rx_dropped", "rx_missed_errors", "tx_dropped", "rx_errors", "tx_errors"}) {
      write("sys/class/net/fe0/statistics/" + std::string(name), "3\n");
    }
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
};

TEST_F(HostFiles, AHostsNetworkStackAndPortAreReadByName) {
  HostCounters counters("fe0", root_);
  const Counts counts = counters.read_host();
  EXPECT_EQ(counts.at(Counter::tcp_received), 100U);
  EXPECT_EQ(counts.at(Counter::tcp_sent), 90U);
  EXPECT_EQ(counts.at(Counter::tcp_retransmissions), 7U);
  EXPECT_EQ(counts.at(Counter::udp_receive_drops), 5U);
  EXPECT_EQ(counts.at(Counter::udp_send_drops), 6U);
  EXPECT_EQ(counts.at(Counter::ip_drops), 2U + 3 + 4);
  EXPECT_EQ(counts.at(Counter::tcp_timeouts), 2U);
  EXPECT_EQ(counts.at(Counter::tcp_delayed_acks), 8U);
  EXPECT_EQ(counts.at(Counter::tcp_drops), 1U + 10);
  EXPECT_EQ(counts.at(Counter::port_receive_drops), 6U);
  EXPECT_EQ(counts.at(Counter::port_send_drops), 3U);
  EXPECT_EQ(counts.at(Counter::port_errors), 6U);
  EXPECT_TRUE(counters.not_counted().empty());
}

TEST_F(HostFiles, AMachinesTimesAreOfAllProcessorsAndItsInterruptsThoseOfTheAdapterToo) {
  for (const char* number : {"1", "3", "5"}) write("sys/devices/pci0/card/msi_irqs/" + std::string(number), "msix\n");
  fs::create_directory_symlink(root_ / "sys/devices/pci0/card", root_ / "sys/class/net/fe0/device");
  HostCounters counters("fe0", root_);
  const Counts counts = counters.read_machine();
  const std::uint64_t tick_ns = 1'000'000'000U / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  EXPECT_EQ(counts.at(Counter::busy_ns), tick_ns * (10 + 20 + 30 + 2 + 3));
  EXPECT_EQ(counts.at(Counter::idle_ns), tick_ns * (1000 + 5));
  EXPECT_EQ(counts.at(Counter::softirq_ns), tick_ns * 3);
  EXPECT_EQ(counts.at(Counter::stolen_ns), tick_ns * 4);
  EXPECT_EQ(counts.at(Counter::interrupts), 900U);
  EXPECT_EQ(counts.at(Counter::device_interrupts), 11U + 13 + 17);
  EXPECT_EQ(counts.at(Counter::softirqs), 600U);
  EXPECT_EQ(counts.at(Counter::send_softirqs), 40U);
  EXPECT_EQ(counts.at(Counter::receive_softirqs), 50U);
  EXPECT_EQ(counts.at(Counter::context_switches), 77U);
}

TEST_F(HostFiles, AnInterfaceBelowAVirtualDeviceHasTheInterruptsOfTheFunctionBelow) {
  write("sys/devices/pci0/card/msi_irqs/3", "msix\n");
  fs::create_directories(root_ / "sys/devices/pci0/card/virtio0");
  fs::create_directory_symlink(root_ / "sys/devices/pci0/card/virtio0", root_ / "sys/class/net/fe0/device");
  HostCounters counters("fe0", root_);
  EXPECT_EQ(counters.read_machine().at(Counter::device_interrupts), 13U);
}

TEST_F(HostFiles, WhatChangesMeanwhileIsReadAnew) {
  HostCounters counters("fe0", root_);
  const Counts before = counters.read_host();
  write("proc/thread-self/net/snmp",
        "Ip: Forwarding InDiscards OutDiscards ReasmFails\nIp: 1 2 3 4\n"
        "Tcp: MaxConn InSegs OutSegs RetransSegs\nTcp: -1 250 90 5\n"
        "Udp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 50 5 6\n");
  const Counts counts = counts_between(before, counters.read_host());
  EXPECT_EQ(counts.at(Counter::tcp_received), 150U);
  EXPECT_EQ(counts.at(Counter::tcp_sent), 0U) << "it counts, and has counted nothing";
  EXPECT_FALSE(counts.contains(Counter::tcp_retransmissions)) << "it was reset: nobody can tell";
}

TEST_F(HostFiles, WhatIsMissingIsToldWithItsFileAndIsNoZero) {
  fs::remove(root_ / "proc/thread-self/net/netstat");
  fs::remove(root_ / "sys/class/net/fe0/statistics/tx_dropped");
  write("proc/stat", "cpu  10 20 30 1000 5 2 3 4 0 0\nctxt 77\nsoftirq 600 1 2 40 50\n");
  HostCounters counters("fe0", root_);
  EXPECT_FALSE(counters.read_host().contains(Counter::tcp_timeouts));
  EXPECT_FALSE(counters.read_host().contains(Counter::port_send_drops));
  const std::vector<NotCounted> missing = counters.not_counted();
  ASSERT_EQ(missing.size(), 3U);
  EXPECT_EQ(missing[0].counters, (std::vector{Counter::tcp_timeouts, Counter::tcp_delayed_acks, Counter::tcp_drops}));
  EXPECT_EQ(missing[0].why, Uncounted::absent);
  EXPECT_TRUE(missing[0].detail.ends_with("net/netstat: No such file or directory")) << missing[0].detail;
  EXPECT_EQ(missing[1].counters, std::vector{Counter::port_send_drops});
  EXPECT_EQ(missing[2].counters, std::vector{Counter::interrupts});
  EXPECT_TRUE(missing[2].detail.ends_with("proc/stat: it does not tell")) << missing[2].detail;
}

TEST(CountsBetween, TheTimeOfReadingIsNoPartOfTheTimeThatPassed) {
  const Counts before{{Counter::elapsed_ns, 1000}, {Counter::reading_ns, 30}};
  const Counts after{{Counter::elapsed_ns, 1900}, {Counter::reading_ns, 50}};
  const Counts counts = counts_between(before, after);
  EXPECT_EQ(counts.at(Counter::elapsed_ns), 850U);
  EXPECT_EQ(counts.at(Counter::reading_ns), 80U);
}

/// A file with what reading an event gives.
int event_of(std::array<std::uint64_t, 3> values) {
  const int file = memfd_create("event", MFD_CLOEXEC);
  EXPECT_EQ(write(file, values.data(), sizeof values), static_cast<ssize_t>(sizeof values));
  lseek(file, 0, SEEK_SET);
  return file;
}

TEST(RankCounting, TheTimeOfAProcessIsCountedWithoutAnyRight) {
  const RankCounters counters([](const perf_event_attr&) { return -ENOENT; });
  const RankCounters::Reading before = counters.read();
  volatile double value = 1;
  for (const std::uint64_t begin = Clock::now(); Clock::now() - begin < 20'000'000;) value = value * 1.0001;
  const Counts counts = counters.between(before, counters.read());
  EXPECT_GT(counts.at(Counter::user_ns) + counts.at(Counter::system_ns), 0U);
  EXPECT_GE(counts.at(Counter::elapsed_ns), 20'000'000U);
  EXPECT_TRUE(counts.contains(Counter::voluntary_switches));
  EXPECT_FALSE(counts.contains(Counter::cycles));
  const std::vector<NotCounted> missing = counters.not_counted();
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].counters.size(), 4U);
  EXPECT_EQ(missing[0].why, Uncounted::absent);
}

TEST(RankCounting, EventsOfTheProcessorAreCountedOnlyWhereAsked) {
  const RankCounters counters;
  EXPECT_TRUE(counters.read().events.empty());
  const std::vector<NotCounted> missing = counters.not_counted();
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].why, Uncounted::unasked);
  EXPECT_EQ(missing[0].counters.size(), 4U);
}

TEST(RankCounting, WhereTheKernelMayNotBeCountedItsUserMay) {
  const RankCounters counters([](const perf_event_attr& asked) {
    if (asked.exclude_kernel == 0) return -EACCES;
    return event_of({1000, 50, 50});
  });
  const RankCounters::Reading before{.counts = {}, .events = {{HardwareEvent::cycles, {400, 20, 20}}}};
  const Counts counts = counters.between(before, counters.read());
  EXPECT_EQ(counts.at(Counter::user_cycles), 600U);
  EXPECT_FALSE(counts.contains(Counter::cycles));
  const std::vector<NotCounted> missing = counters.not_counted();
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].why, Uncounted::forbidden);
  EXPECT_TRUE(std::ranges::count(missing[0].counters, Counter::migrations)) << "those are only inside the kernel";
  EXPECT_TRUE(std::ranges::count(missing[0].counters, Counter::cycles));
}

TEST(HardwareEventsTest, AnEventThatSharedItsCounterIsScaled) {
  EXPECT_EQ(counted_between({100, 10, 10}, {400, 40, 25}), 600U);
  EXPECT_EQ(counted_between({100, 10, 10}, {400, 40, 10}), std::nullopt) << "it was never counted meanwhile";
  EXPECT_EQ(counted_between({100, 10, 10}, {100, 10, 10}), 0U) << "the thread did not run";
}

TEST(UncountedOfRanksTest, WhatIsAlikeIsToldOnce) {
  UncountedOfRanks all;
  const nlohmann::json absent = to_record({{{Counter::cycles}, Uncounted::absent, "no"}});
  for (const int rank : {3, 4, 7}) all.add(rank, absent);
  all.add(5, to_record({{{Counter::cycles}, Uncounted::forbidden, "not you"}}));
  const nlohmann::json told = all.to_record();
  ASSERT_EQ(told.size(), 2U);
  const nlohmann::json& first = told[0]["why"] == "absent" ? told[0] : told[1];
  EXPECT_EQ(first["first_rank"], 3);
  EXPECT_EQ(first["ranks"], 3);
  EXPECT_EQ(first["counters"], nlohmann::json({"cycles"}));
}

}  // namespace
}  // namespace fabricbench
