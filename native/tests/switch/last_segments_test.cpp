#include "switch/last_segments.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fabricbench::emulated_switch {
namespace {

constexpr std::int64_t kSegment = 1448;
constexpr HoldRule kRule{31'744, 1500, 200'000};

/// The headers of a segment, time stamps included.
std::vector<std::uint8_t> segment_of(std::int64_t payload_bytes, bool is_pushed, std::uint8_t port = 1) {
  std::vector<std::uint8_t> frame(14 + 20 + 32);
  const auto total = static_cast<std::uint16_t>(52 + payload_bytes);
  frame[12] = 0x08;
  frame[14] = 0x45;
  frame[16] = static_cast<std::uint8_t>(total >> 8U);
  frame[17] = static_cast<std::uint8_t>(total & 0xffU);
  frame[20] = 0x40;  // not to be fragmented
  frame[23] = 6;
  frame[34] = port;
  frame[46] = 8 << 4U;
  frame[47] = is_pushed ? 0x18 : 0x10;
  return frame;
}

std::int64_t ask(LastSegments& last, const std::vector<std::uint8_t>& frame) {
  return last.hold_ns(frame.data(), static_cast<std::uint32_t>(frame.size()));
}

/// How long each segment of a message is held.
std::vector<std::int64_t> message(LastSegments& last, std::int64_t bytes, std::uint8_t port = 1) {
  std::vector<std::int64_t> held;
  for (; bytes > kSegment; bytes -= kSegment) held.push_back(ask(last, segment_of(kSegment, false, port)));
  held.push_back(ask(last, segment_of(bytes, true, port)));
  return held;
}

TEST(LastSegments, OfAMessageOfThatSizeTheLastOneAloneIsHeld) {
  LastSegments last(kRule);
  std::vector<std::int64_t> wanted(22, 0);
  wanted.back() = 200'000;
  EXPECT_EQ(message(last, 31'744), wanted);
  EXPECT_EQ(message(last, 31'744), wanted) << "the next message is counted from its own begin";
}

TEST(LastSegments, SmallerAndLargerMessagesPass) {
  LastSegments last(kRule);
  for (const std::int64_t bytes : {64, 30'000, 33'500, 65'536}) {
    for (const std::int64_t held : message(last, bytes)) EXPECT_EQ(held, 0) << bytes;
  }
}

TEST(LastSegments, EachConnectionIsCountedByItself) {
  LastSegments last(kRule);
  ask(last, segment_of(kSegment, false, 2));
  EXPECT_EQ(message(last, 31'744).back(), 200'000);
  EXPECT_EQ(message(last, 31'744 - kSegment, 2).back(), 200'000) << "with the segment before";
}

TEST(LastSegments, AcknowledgementsAndOtherTrafficArePassedOver) {
  LastSegments last(kRule);
  EXPECT_EQ(ask(last, segment_of(0, true)), 0);
  std::vector<std::uint8_t> datagram = segment_of(kSegment, true);
  datagram[23] = 17;
  EXPECT_EQ(ask(last, datagram), 0);
  EXPECT_EQ(last.hold_ns(datagram.data(), 20), 0);
  EXPECT_EQ(message(last, 31'744).back(), 200'000);
}

TEST(LastSegments, WithoutARuleNothingIsHeld) {
  LastSegments last(std::nullopt);
  EXPECT_EQ(message(last, 31'744).back(), 0);
}

}  // namespace
}  // namespace fabricbench::emulated_switch
