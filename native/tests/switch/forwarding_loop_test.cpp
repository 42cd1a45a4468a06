// The real loop between ports made of lists, in a time that passes only as the loop spends it.
#include "switch/forwarding_loop.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <tuple>

namespace fabricbench::emulated_switch {
namespace {

constexpr std::int64_t kStartNs = 1'000'000'000;
constexpr std::int64_t kTakeNs = 100;       // taking a frame and asking the model about it
constexpr std::int64_t kTurnNs = 200;       // a turn that finds nothing
constexpr std::int64_t kSendNs = 3'000;     // a send that runs the receiver's stack
constexpr std::int64_t kVisibleNs = 1'500;  // from the arrival stamp into the ring
constexpr std::uint32_t kPorts = 4;

struct Schedule {
  std::int64_t arrival_ns;
  std::uint32_t bytes;
  std::uint32_t to;
};

/// What the ports and the clock share.
struct World {
  std::int64_t now_ns = kStartNs;
  std::vector<std::vector<Schedule>> arriving{kPorts};
  std::vector<std::vector<std::array<std::uint8_t, 16>>> frames{kPorts};
  std::vector<std::vector<std::uint32_t>> sent{kPorts};  // by egress port: ingress port x 2^24 + number
  std::vector<std::int64_t> full_until_ns = std::vector<std::int64_t>(kPorts, 0);  // a socket's buffer
  std::vector<bool> is_down = std::vector<bool>(kPorts, false);
  std::size_t on_their_way = 0;

  void add(std::uint32_t from, const Schedule& one) {
    std::array<std::uint8_t, 16> frame{};
    frame[0] = 2;
    frame[5] = static_cast<std::uint8_t>(one.to + 1);
    const auto name = from << 24U | static_cast<std::uint32_t>(arriving[from].size());
    std::memcpy(&frame[6], &name, sizeof name);
    arriving[from].push_back(one);
    frames[from].push_back(frame);
  }
};

struct FakeClock {
  World* world;
  [[nodiscard]] std::int64_t now_ns() const { return world->now_ns; }
};

struct FakeRing {
  World* world;
  std::size_t port;
  std::uint32_t next = 0;
  std::vector<int> holders{};

  std::optional<ReceivedFrame> take() {
    const auto& arriving = world->arriving[port];
    if (next == arriving.size() || arriving[next].arrival_ns + kVisibleNs > world->now_ns) return std::nullopt;
    world->now_ns += kTakeNs;
    holders.push_back(1);
    ++world->on_their_way;
    const ReceivedFrame frame{next, arriving[next].bytes, arriving[next].arrival_ns, true, true};
    ++next;
    return frame;
  }
  void hold(std::uint32_t slot) { ++holders[slot]; }
  void release(std::uint32_t slot) {
    if (--holders[slot] == 0) --world->on_their_way;
  }
  [[nodiscard]] const std::uint8_t* data(std::uint32_t slot) const { return world->frames[port][slot].data(); }
};

struct FakeSender {
  World* world;
  std::size_t port;

  Sending send(std::span<const std::uint8_t> frame) {
    world->now_ns += kSendNs;
    if (world->now_ns < world->full_until_ns[port]) return Sending::later;
    if (world->is_down[port]) return Sending::refused;
    std::uint32_t name = 0;
    std::memcpy(&name, &frame[6], sizeof name);
    world->sent[port].push_back(name);
    return Sending::done;
  }
  Sending send_stamped(std::span<const std::uint8_t> frame) { return send(frame); }
  static std::optional<std::int64_t> take_stamp_ns() { return std::nullopt; }
};

using Loop = ForwardingLoop<FakeRing, FakeSender, FakeClock>;

Config config_of(std::int64_t line_rate_bit_s, std::int64_t delay_ns, Switching switching) {
  Config config;
  config.name = "rig";
  config.mtu = 1500;
  config.timing.switching = switching;
  config.timing.port_buffer_bytes = 1LL << 30;
  config.timing.host_queue_bytes = 1LL << 30;
  for (std::uint32_t port = 0; port < kPorts; ++port) {
    Mac mac = 0;
    const std::array<std::uint8_t, 6> bytes{2, 0, 0, 0, 0, static_cast<std::uint8_t>(port + 1)};
    std::memcpy(&mac, bytes.data(), bytes.size());
    config.ports.push_back({"p" + std::to_string(port), mac});
    config.timing.ports.push_back({line_rate_bit_s, delay_ns, delay_ns});
  }
  return config;
}

/// Turns until every frame has come and left.
void run(World& world, const Config& config, Statistics& statistics) {
  std::vector<Loop::Ends> ends;
  for (std::size_t port = 0; port < kPorts; ++port) ends.push_back({FakeRing{&world, port}, FakeSender{&world, port}});
  Loop loop(config, statistics, std::move(ends), FakeClock{&world});
  const auto is_over = [&] {
    for (std::size_t port = 0; port < kPorts; ++port) {
      if (loop.ring(port).next < world.arriving[port].size()) return false;
    }
    return world.on_their_way == 0;
  };
  while (!is_over()) {
    loop.turn();
    world.now_ns += kTurnNs;
    ASSERT_LT(world.now_ns, kStartNs + 10'000'000'000) << "the loop does not come to an end";
  }
}

/// The order in which frames leave `to` if the model is asked knowing all arrivals.
std::vector<std::uint32_t> ideal_order(const World& world, const Config& config, std::uint32_t to) {
  TimingModel model(config.timing);
  std::vector<std::tuple<std::int64_t, std::uint32_t>> ready;
  for (std::uint32_t from = 0; from < kPorts; ++from) {
    for (std::uint32_t i = 0; i < world.arriving[from].size(); ++i) {
      const Schedule& one = world.arriving[from][i];
      const auto crossing = model.offer(from, one.arrival_ns, one.bytes);
      if (one.to == to) ready.emplace_back(crossing.value().ready_ns, from << 24U | i);
    }
  }
  std::sort(ready.begin(), ready.end());
  std::vector<std::uint32_t> order;
  for (const auto& [ready_ns, name] : ready) order.push_back(name);
  return order;
}

struct Load {
  std::int64_t line_rate_bit_s;
  std::uint32_t bytes;
  std::int64_t delay_ns;
  std::int64_t stall_ns;  // how late the loop begins
  Switching switching;
};

class AsymmetricLoad : public testing::TestWithParam<Load> {};

TEST_P(AsymmetricLoad, FramesAreAdmittedInTheOrderInWhichTheyAreReady) {
  const Load& load = GetParam();
  const Config config = config_of(load.line_rate_bit_s, load.delay_ns, load.switching);
  World world;
  const std::int64_t gap_ns = config.timing.wire.wire_bytes(load.bytes) * 8'000'000'000 / load.line_rate_bit_s;
  for (int i = 0; i < 4'000; ++i) world.add(1, {kStartNs + i * gap_ns, load.bytes, 0});
  for (int i = 0; i < 200; ++i) world.add(2, {kStartNs + 20 * i * gap_ns + gap_ns / 3, load.bytes, 0});
  const std::vector<std::uint32_t> ideal = ideal_order(world, config, 0);
  world.now_ns += load.stall_ns;
  auto statistics = std::make_unique<Statistics>(kPorts);
  run(world, config, *statistics);
  EXPECT_EQ(statistics->ports[0].out_of_order_frames.value(), 0U);
  EXPECT_EQ(statistics->ports[0].sent.frames.value(), 4'200U);
  EXPECT_TRUE(world.sent[0] == ideal) << "frames left in another order";
}

INSTANTIATE_TEST_SUITE_P(ForwardingLoop, AsymmetricLoad,
                         testing::Values(Load{1'000'000'000, 64, 500, 0, Switching::store_and_forward},
                                         Load{1'000'000'000, 64, 500, 200'000, Switching::store_and_forward},
                                         Load{1'000'000'000, 64, 5'000, 0, Switching::cut_through},
                                         Load{2'000'000'000, 1500, 500, 200'000, Switching::store_and_forward},
                                         Load{10'000'000'000, 64, 0, 0, Switching::cut_through},
                                         Load{100'000'000, 64, 25'000, 0, Switching::store_and_forward}));

constexpr std::int64_t kGapNs = 100'000;

World one_sender(int frames) {
  World world;
  for (int i = 0; i < frames; ++i) world.add(1, {kStartNs + i * kGapNs, 1500, 0});
  return world;
}

TEST(ForwardingLoop, AFullSocketBufferDelaysFramesAndIsNoDropOfTheFabric) {
  const Config config = config_of(1'000'000'000, 500, Switching::store_and_forward);
  World world = one_sender(20);
  for (int i = 0; i < 20; ++i) world.add(2, {kStartNs + i * kGapNs, 1500, 3});
  world.full_until_ns[0] = kStartNs + 1'000'000;
  auto statistics = std::make_unique<Statistics>(kPorts);
  run(world, config, *statistics);
  EXPECT_EQ(statistics->ports[0].sent.frames.value(), 20U);
  EXPECT_EQ(statistics->ports[0].dropped.frames.value(), 0U);
  EXPECT_EQ(statistics->ports[0].unsent.frames.value(), 0U);
  EXPECT_GT(statistics->ports[0].send_retries.value(), 0U);
  EXPECT_EQ(statistics->ports[3].sent.frames.value(), 20U);
  EXPECT_EQ(statistics->ports[3].send_retries.value(), 0U);
  EXPECT_TRUE(world.sent[0] == ideal_order(world, config, 0));
}

TEST(ForwardingLoop, WhatTheSocketNeverTakesIsTheEmulatorsOwnFailure) {
  const Config config = config_of(1'000'000'000, 500, Switching::store_and_forward);
  World world = one_sender(20);
  world.full_until_ns[0] = kStartNs + 1'000'000'000;
  auto statistics = std::make_unique<Statistics>(kPorts);
  run(world, config, *statistics);
  EXPECT_EQ(statistics->ports[0].unsent.frames.value(), 20U);
  EXPECT_EQ(statistics->ports[0].unsent.bytes.value(), 20U * 1500);
  EXPECT_EQ(statistics->ports[0].dropped.frames.value(), 0U);
  EXPECT_EQ(statistics->ports[0].sent.frames.value(), 0U);
}

TEST(ForwardingLoop, AnInterfaceThatIsDownIsNotTriedAgain) {
  const Config config = config_of(1'000'000'000, 500, Switching::store_and_forward);
  World world = one_sender(20);
  world.is_down[0] = true;
  auto statistics = std::make_unique<Statistics>(kPorts);
  run(world, config, *statistics);
  EXPECT_EQ(statistics->ports[0].unsent.frames.value(), 20U);
  EXPECT_EQ(statistics->ports[0].send_retries.value(), 0U);
  EXPECT_EQ(statistics->ports[0].dropped.frames.value(), 0U);
}

/// Four ports on a ring of segments, each of which leads from a port to the next.
Config ring_of(std::int64_t line_rate_bit_s, std::int64_t segment_rate_bit_s, std::int64_t latency_ns) {
  Config config = config_of(line_rate_bit_s, 5'000, Switching::cut_through);
  config.timing.segments.assign(kPorts, {segment_rate_bit_s, latency_ns});
  config.timing.routes.assign(kPorts, std::vector<Route>(kPorts));
  for (std::uint32_t from = 0; from < kPorts; ++from) {
    for (std::uint32_t hops = 1; hops < kPorts; ++hops) {
      Route& route = config.timing.routes[from][(from + hops) % kPorts];
      for (std::uint32_t hop = 0; hop < hops; ++hop) route.push_back((from + hop) % kPorts);
    }
  }
  return config;
}

TEST(ForwardingLoop, FlowsOverOneSegmentShareItAndNoneIsLostOrOutOfOrder) {
  constexpr std::int64_t kRate = 1'000'000'000;
  constexpr int kFrames = 500;
  const std::int64_t frame_ns = 1538 * 8 * 1'000'000'000LL / kRate;
  const Config config = ring_of(kRate, kRate, 200);
  World world;
  for (int i = 0; i < kFrames; ++i) {
    world.add(0, {kStartNs + i * frame_ns, 1514, 2});  // over segments 0 and 1
    world.add(1, {kStartNs + i * frame_ns, 1514, 3});  // over segments 1 and 2
  }
  auto statistics = std::make_unique<Statistics>(kPorts);
  run(world, config, *statistics);
  for (const std::size_t to : {2U, 3U}) {
    EXPECT_EQ(statistics->ports[to].sent.frames.value(), static_cast<std::uint64_t>(kFrames));
    EXPECT_EQ(statistics->ports[to].dropped.frames.value(), 0U);
    EXPECT_EQ(statistics->ports[to].out_of_order_frames.value(), 0U);
  }
  EXPECT_GE(world.now_ns, kStartNs + 2 * kFrames * frame_ns);
  EXPECT_LT(world.now_ns, kStartNs + 2 * (kFrames + 10) * frame_ns);
}

TEST(ForwardingLoop, FlowsOverSegmentsOfTheirOwnTakeNoLongerThanOne) {
  constexpr std::int64_t kRate = 100'000'000;
  constexpr int kFrames = 100;
  const std::int64_t frame_ns = 1538 * 8 * 1'000'000'000LL / kRate;
  World world;
  for (int i = 0; i < kFrames; ++i) {
    for (std::uint32_t from = 0; from < kPorts; ++from) {
      world.add(from, {kStartNs + i * frame_ns, 1514, (from + 1) % kPorts});
    }
  }
  auto statistics = std::make_unique<Statistics>(kPorts);
  run(world, ring_of(kRate, kRate, 200), *statistics);
  for (const PortCounters& port : statistics->ports) {
    EXPECT_EQ(port.sent.frames.value(), static_cast<std::uint64_t>(kFrames));
  }
  EXPECT_LT(world.now_ns, kStartNs + (kFrames + 5) * frame_ns);
}

TEST(ForwardingLoop, AFrameToNobodyKnownReachesAllOverTheirRoutes) {
  World world;
  world.add(0, {kStartNs, 60, 100});
  auto statistics = std::make_unique<Statistics>(kPorts);
  run(world, ring_of(1'000'000'000, 1'000'000'000, 200), *statistics);
  EXPECT_TRUE(world.sent[0].empty());
  for (std::size_t to = 1; to < kPorts; ++to) EXPECT_EQ(world.sent[to].size(), 1U);
}

TEST(ForwardingLoop, AFullPortBufferIsADropOfTheFabric) {
  Config config = config_of(1'000'000'000, 500, Switching::store_and_forward);
  config.timing.port_buffer_bytes = 10 * 1538;
  World world;
  for (int i = 0; i < 20; ++i) {
    world.add(1, {kStartNs, 1500, 0});
    world.add(2, {kStartNs, 1500, 0});
  }
  auto statistics = std::make_unique<Statistics>(kPorts);
  run(world, config, *statistics);
  EXPECT_GT(statistics->ports[0].dropped.frames.value(), 5U);
  EXPECT_EQ(statistics->ports[0].dropped.frames.value() + statistics->ports[0].sent.frames.value(), 40U);
  EXPECT_EQ(statistics->ports[0].unsent.frames.value(), 0U);
}

TEST(Fifo, KeepsTheOrderWhileItGrowsAroundItsEnd) {
  Fifo<int> fifo;
  int next_in = 0;
  int next_out = 0;
  for (; next_in < 700; ++next_in) fifo.push(next_in);
  for (; next_out < 650; ++next_out, fifo.pop()) ASSERT_EQ(fifo.front(), next_out);
  for (; next_in < 5'000; ++next_in) fifo.push(next_in);
  for (; next_out < 5'000; ++next_out, fifo.pop()) ASSERT_EQ(fifo.front(), next_out);
  EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace fabricbench::emulated_switch
