#include "switch/timing.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fabricbench::emulated_switch {
namespace {

constexpr std::int64_t kFast = 100'000'000;  // 80 ns a byte
constexpr std::int64_t kMyrinet = 1'280'000'000;
constexpr std::int64_t kDelayNs = 25'000;
constexpr std::int64_t kFull = 1514;                      // the longest Ethernet frame, 1538 bytes on the wire
constexpr std::int64_t kFullNs = 1538 * 80;               // at 100 Mbit/s
constexpr std::int64_t kStart = 5'000'000'000'000'000LL;  // two months after boot

FabricTiming fabric(Switching switching, std::int64_t line_rate_bit_s = kFast) {
  FabricTiming timing;
  timing.switching = switching;
  timing.port_buffer_bytes = 16 * 1538;
  timing.host_queue_bytes = 1 << 20;
  timing.ports.assign(3, {line_rate_bit_s, kDelayNs, kDelayNs});
  return timing;
}

std::int64_t delay_through(const FabricTiming& timing, std::int64_t frame_bytes) {
  TimingModel model(timing);
  const auto crossing = model.offer(0, kStart, frame_bytes);
  return model.admit(1, crossing.value()).value() - kStart;
}

TEST(Timing, StoreAndForwardSerialisesTwice) {
  EXPECT_EQ(delay_through(fabric(Switching::store_and_forward), kFull), 2 * kFullNs + 2 * kDelayNs);
}

TEST(Timing, CutThroughSerialisesOnceAndTheHeaderAgain) {
  EXPECT_EQ(delay_through(fabric(Switching::cut_through), kFull), kFullNs + 64 * 80 + 2 * kDelayNs);
}

TEST(Timing, AShortFrameTakesTheSmallestFramesTime) {
  EXPECT_EQ(delay_through(fabric(Switching::store_and_forward), 42), 2 * 84 * 80 + 2 * kDelayNs);
}

TEST(Timing, ForwardingLatencyIsAdded) {
  FabricTiming timing = fabric(Switching::store_and_forward);
  timing.switch_latency_ns = 1234;
  EXPECT_EQ(delay_through(timing, kFull), 2 * kFullNs + 2 * kDelayNs + 1234);
  timing.switching = Switching::cut_through;
  EXPECT_EQ(delay_through(timing, kFull), kFullNs + 64 * 80 + 2 * kDelayNs + 1234);
}

TEST(Timing, WhatTheWireTakesIsTheWholeWithoutTheSwitchsLatency) {
  for (const Switching switching : {Switching::store_and_forward, Switching::cut_through, Switching::none}) {
    for (const std::int64_t bytes : {std::int64_t{42}, kFull}) {
      FabricTiming timing = fabric(switching);
      const std::int64_t without = delay_through(timing, bytes);
      timing.switch_latency_ns = switching == Switching::none ? 0 : 1234;
      EXPECT_EQ(TimingModel(timing).wire_ns(0, 1, bytes), without);
    }
  }
}

TEST(Timing, AFrameWaitsForItsHostsLinkAsLongAsThoseBeforeItTake) {
  TimingModel model(fabric(Switching::store_and_forward));
  const auto first = model.offer(0, kStart, kFull);
  const auto second = model.offer(0, kStart + 1'000, kFull);
  EXPECT_EQ(model.link_wait_ns(0, kStart, first.value()), 0);
  EXPECT_EQ(model.link_wait_ns(0, kStart + 1'000, second.value()), kFullNs - 1'000);
}

TEST(Timing, CellsAreServedWhole) {
  FabricTiming timing = fabric(Switching::store_and_forward);
  timing.wire.overhead_bytes = 2;
  timing.wire.cell = CellTax{48, 53};
  // 1514 + 2 bytes are 32 cells; a frame of 42 bytes is one, and no smallest frame applies.
  EXPECT_EQ(delay_through(timing, kFull), 2 * 32 * 53 * 80 + 2 * kDelayNs);
  EXPECT_EQ(delay_through(timing, 42), 2 * 53 * 80 + 2 * kDelayNs);
  timing.switching = Switching::cut_through;
  EXPECT_EQ(delay_through(timing, kFull), 33 * 53 * 80 + 2 * kDelayNs);
}

TEST(Timing, CutThroughToAFasterLinkEndsNoSoonerThanTheTailArrives) {
  FabricTiming timing = fabric(Switching::cut_through);
  timing.ports[1].line_rate_bit_s = 10 * kFast;
  EXPECT_EQ(delay_through(timing, kFull), kFullNs + 2 * kDelayNs);
}

TEST(Timing, EachDirectionOfAPortHasItsOwnDelay) {
  FabricTiming timing = fabric(Switching::store_and_forward);
  timing.ports[1] = {kFast, 20'000, 70'000};
  EXPECT_EQ(delay_through(timing, kFull), 2 * kFullNs + kDelayNs + 70'000);
  timing.ports[0] = {kFast, 30'000, 90'000};
  EXPECT_EQ(delay_through(timing, kFull), 2 * kFullNs + 30'000 + 70'000);
}

TEST(Timing, EachPortHasItsOwnDelayAndRate) {
  FabricTiming timing = fabric(Switching::store_and_forward);
  timing.ports[1] = {10 * kFast, 1'000, 1'000};
  EXPECT_EQ(delay_through(timing, kFull), kFullNs + kDelayNs + kFullNs / 10 + 1'000);
}

TEST(Timing, FramesHandedOverAtOnceLeaveALineRateApart) {
  TimingModel model(fabric(Switching::store_and_forward));
  std::int64_t last_ns = 0;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t release_ns = model.admit(1, model.offer(0, kStart, kFull).value()).value();
    if (i > 0) {
      EXPECT_EQ(release_ns - last_ns, kFullNs);
    }
    last_ns = release_ns;
  }
}

TEST(Timing, FramesOfTwoHostsShareTheEgressLink) {
  TimingModel model(fabric(Switching::store_and_forward));
  const auto first = model.offer(0, kStart, kFull).value();
  const auto second = model.offer(2, kStart, kFull).value();
  EXPECT_EQ(first.ready_ns, second.ready_ns);
  const std::int64_t alone_ns = model.admit(1, first).value();
  EXPECT_EQ(model.admit(1, second).value(), alone_ns + kFullNs);
}

TEST(Timing, CoalescedInterruptsHoldTheFirstFrameForThoseBehindIt) {
  FabricTiming timing = fabric(Switching::store_and_forward);
  const std::int64_t alone_ns = delay_through(timing, kFull);
  timing.coalesce_ns = 2 * kFullNs + 1;
  EXPECT_EQ(delay_through(timing, kFull), alone_ns + timing.coalesce_ns);

  TimingModel model(timing);
  std::vector<std::int64_t> heard;
  for (int i = 0; i < 5; ++i) heard.push_back(model.admit(1, model.offer(0, kStart, kFull).value()).value() - kStart);
  const std::int64_t first = alone_ns + timing.coalesce_ns;
  EXPECT_EQ(heard, (std::vector{first, first, first, first + 3 * kFullNs, first + 3 * kFullNs}));
}

TEST(Timing, InterruptsInAPeriodHoldEveryFrameForItsNextMultiple) {
  FabricTiming timing = fabric(Switching::store_and_forward);
  const std::int64_t come_ns = kStart + delay_through(timing, kFull);
  timing.interrupt_period_ns = 125'000;
  TimingModel model(timing);
  const std::int64_t heard_ns = model.admit(1, model.offer(0, kStart, kFull).value()).value();
  EXPECT_EQ(heard_ns % timing.interrupt_period_ns, 0);
  EXPECT_GE(heard_ns, come_ns);
  EXPECT_LT(heard_ns, come_ns + timing.interrupt_period_ns);
}

TEST(Timing, AFullPortDropsTheTailAndTakesFramesAgainOnceItDrained) {
  FabricTiming timing = fabric(Switching::store_and_forward);
  timing.ports[1].line_rate_bit_s = kFast / 10;
  timing.port_buffer_bytes = 4 * 1538;
  TimingModel model(timing);
  int taken = 0;
  for (int i = 0; i < 6; ++i) taken += model.admit(1, {kStart, kStart, 1538}).has_value() ? 1 : 0;
  EXPECT_EQ(taken, 4);
  EXPECT_FALSE(model.admit(1, {kStart + 10 * kFullNs - 10'000, kStart, 1538}).has_value());
  EXPECT_TRUE(model.admit(1, {kStart + 10 * kFullNs + 10'000, kStart, 1538}).has_value());
}

TEST(Timing, AnIdlePortTakesAFrameLargerThanItsBuffer) {
  FabricTiming timing = fabric(Switching::store_and_forward);
  timing.port_buffer_bytes = 0;
  TimingModel model(timing);
  EXPECT_TRUE(model.admit(1, {kStart, kStart, 1538}).has_value());
  EXPECT_FALSE(model.admit(1, {kStart, kStart, 1538}).has_value());
}

TEST(Timing, AHostThatHandsOverMoreThanItsQueueHoldsLosesFrames) {
  FabricTiming timing = fabric(Switching::store_and_forward);
  timing.host_queue_bytes = 10 * 1538;
  TimingModel model(timing);
  int taken = 0;
  for (int i = 0; i < 20; ++i) taken += model.offer(0, kStart, kFull).has_value() ? 1 : 0;
  EXPECT_EQ(taken, 11);  // ten in the queue and the one that overran it
  EXPECT_TRUE(model.offer(1, kStart, kFull).has_value());
}

TEST(Timing, AMillionFramesTakeWhatAMillionFramesMust) {
  // 155.52 Mbit/s divides no frame into whole nanoseconds; rounding each would be off by 0.3 ms here.
  constexpr std::int64_t rate = 155'520'000;
  constexpr std::int64_t frames = 1'000'000;
  Link link(rate);
  for (std::int64_t i = 0; i < frames; ++i) link.occupy(kStart, 85);
  const std::int64_t exact_ns = frames * 85 * 8 * 1'000'000 / (rate / 1'000);
  EXPECT_NEAR(static_cast<double>(link.occupy(kStart, 0).end_ns - kStart), static_cast<double>(exact_ns), 1.0);
}

TEST(Timing, BacklogIsWhatIsStillToBeSent) {
  Link link(kMyrinet);
  link.occupy(kStart, 1600);  // 10 us
  EXPECT_EQ(link.backlog_bytes(kStart), 1600);
  EXPECT_EQ(link.backlog_bytes(kStart + 5'000), 800);
  EXPECT_EQ(link.backlog_bytes(kStart + 20'000), 0);
}

TEST(Timing, NothingIsReadyBeforeTheLookahead) {
  for (const Switching switching : {Switching::store_and_forward, Switching::cut_through}) {
    for (const std::int64_t bytes : {14, 60, 1514}) {
      TimingModel model(fabric(switching, kMyrinet));
      EXPECT_GE(model.offer(0, kStart, bytes).value().ready_ns, kStart + model.lookahead_ns());
    }
  }
}

TEST(Timing, CutThroughReadyTimesOfAPortAreInOrder) {
  TimingModel model(fabric(Switching::cut_through));
  std::int64_t last_ready_ns = 0;
  for (const std::int64_t bytes : {1514, 42, 60, 1514, 14}) {
    const auto crossing = model.offer(0, kStart, bytes).value();
    EXPECT_GT(crossing.ready_ns, last_ready_ns);
    EXPECT_LE(crossing.ready_ns, crossing.tail_ns);
    last_ready_ns = crossing.ready_ns;
  }
}

FabricTiming cable(std::int64_t line_rate_bit_s = kFast) {
  FabricTiming timing = fabric(Switching::none, line_rate_bit_s);
  timing.ports.assign(2, {line_rate_bit_s, kDelayNs, 0});
  return timing;
}

TEST(Timing, ACableSerialisesOnceAndHasOneDelay) {
  EXPECT_EQ(delay_through(cable(), kFull), kFullNs + kDelayNs);
  EXPECT_EQ(delay_through(cable(), 42), 84 * 80 + kDelayNs);
}

TEST(Timing, FramesOnACableLeaveALineRateApartAndNoneIsDropped) {
  FabricTiming timing = cable(kMyrinet);
  timing.port_buffer_bytes = 1538;
  TimingModel model(timing);
  for (std::int64_t i = 1; i <= 500; ++i) {
    const auto release_ns = model.admit(1, model.offer(0, kStart, kFull).value());
    ASSERT_TRUE(release_ns.has_value());
    EXPECT_NEAR(static_cast<double>(*release_ns - kStart - kDelayNs), static_cast<double>(i) * 1538 * 8 / 1.28, 1.0);
  }
}

constexpr std::int64_t kHopNs = 3'000;

/// Three ports on a ring: port i is followed by segment i, which leads to port i + 1.
FabricTiming ring(std::int64_t segment_rate_bit_s) {
  FabricTiming timing = fabric(Switching::cut_through);
  timing.segments.assign(3, {segment_rate_bit_s, kHopNs});
  timing.routes = {{{}, {0}, {0, 1}}, {{1, 2}, {}, {1}}, {{2}, {2, 0}, {}}};
  return timing;
}

std::int64_t delay_around(TimingModel& model, std::size_t from, std::size_t to, std::int64_t frame_bytes) {
  Crossing crossing = model.offer(from, kStart, frame_bytes).value();
  for (const std::uint32_t segment : model.route(from, to)) crossing = model.pass(segment, crossing).value();
  return model.admit(to, crossing).value() - kStart;
}

TEST(Timing, EachSegmentOfARouteAddsItsLatency) {
  const std::int64_t without_ns = delay_through(fabric(Switching::cut_through), kFull);
  TimingModel near(ring(kFast));
  EXPECT_EQ(delay_around(near, 0, 1, kFull), without_ns + kHopNs);
  TimingModel far(ring(kFast));
  EXPECT_EQ(delay_around(far, 0, 2, kFull), without_ns + 2 * kHopNs);
}

TEST(Timing, ASlowSegmentHoldsUpTheTailOnceHoweverOftenItIsCrossed) {
  TimingModel model(ring(kFast / 2));
  const std::int64_t header_ns = 64 * 80;
  EXPECT_EQ(delay_around(model, 0, 2, kFull), header_ns + 2 * kFullNs + 2 * kHopNs + 2 * kDelayNs);
}

TEST(Timing, TwoFlowsShareTheSegmentThatBothCross) {
  TimingModel model(ring(kFast));
  const std::int64_t alone_ns = delay_around(model, 0, 2, kFull);            // over segments 0 and 1
  const Crossing crossing = model.offer(1, kStart + kHopNs, kFull).value();  // ready with the other, over segment 1
  EXPECT_EQ(model.admit(2, model.pass(1, crossing).value()).value() - kStart, alone_ns + kFullNs);
}

TEST(Timing, FlowsOverSegmentsOfTheirOwnDoNotWait) {
  TimingModel model(ring(kFast));
  const std::int64_t alone_ns = delay_around(model, 0, 1, kFull);
  EXPECT_EQ(delay_around(model, 1, 2, kFull), alone_ns);
  EXPECT_EQ(delay_around(model, 2, 0, kFull), alone_ns);
}

TEST(Timing, AFastSegmentHasRoomForOthersWhileAFrameTricklesIn) {
  TimingModel model(ring(10 * kFast));
  const std::int64_t first_ns = model.pass(1, {kStart, kStart + kFullNs, 1538}).value().ready_ns;
  EXPECT_EQ(model.pass(1, {kStart, kStart + kFullNs, 1538}).value().ready_ns, first_ns + kFullNs / 10);
}

TEST(Timing, ASegmentDropsWhatItsBufferDoesNotHold) {
  FabricTiming timing = ring(kFast);
  timing.port_buffer_bytes = 4 * 1538;
  TimingModel model(timing);
  int taken = 0;
  for (int i = 0; i < 6; ++i) taken += model.pass(0, {kStart, kStart, 1538}).has_value() ? 1 : 0;
  EXPECT_EQ(taken, 4);
  EXPECT_TRUE(model.pass(1, {kStart, kStart, 1538}).has_value());
}

TEST(Wire, AFullEthernetFrameTakes1538Bytes) { EXPECT_EQ(Wire{}.wire_bytes(1514), 1538); }

TEST(Wire, AShortFrameTakesTheMinimum) {
  EXPECT_EQ(Wire{}.wire_bytes(42), 84);
  EXPECT_EQ(Wire{}.wire_bytes(60), 84);
  EXPECT_EQ(Wire{}.wire_bytes(61), 85);
}

TEST(Wire, CellsAreRoundedUp) {
  const Wire atm{.overhead_bytes = 2, .cell = CellTax{48, 53}};
  EXPECT_EQ(atm.wire_bytes(46), 53);
  EXPECT_EQ(atm.wire_bytes(47), 106);
  EXPECT_EQ(atm.header_bytes(), 53);
}

TEST(Wire, ANegativeOverheadMakesNoFrameFree) {
  const Wire bare{.overhead_bytes = -14, .minimum_bytes = 1, .cell = CellTax{48, 53}};
  EXPECT_EQ(bare.wire_bytes(14), 53);
}

}  // namespace
}  // namespace fabricbench::emulated_switch
