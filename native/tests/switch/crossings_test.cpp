#include "switch/crossings.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace fabricbench::emulated_switch {
namespace {

constexpr std::uint8_t kUdp = 17;
constexpr std::uint8_t kTcp = 6;

/// The headers of a frame of IPv4; `total` is the packet's length.
std::vector<std::uint8_t> frame_of(std::uint8_t protocol, std::uint16_t total, std::uint8_t time_to_live = 77) {
  std::vector<std::uint8_t> frame(14 + 60);
  frame[12] = 0x08;
  frame[14] = 0x45;
  frame[16] = static_cast<std::uint8_t>(total >> 8U);
  frame[17] = static_cast<std::uint8_t>(total & 0xffU);
  frame[22] = time_to_live;
  frame[23] = protocol;
  frame[46] = 8 << 4U;  // a header of 32 bytes, with time stamps
  return frame;
}

/// A frame of our own type with a token and the number of its message.
std::vector<std::uint8_t> message_of(std::uint8_t type, std::uint32_t number, std::size_t bytes = 14 + 8) {
  std::vector<std::uint8_t> frame(14 + 8, 0xff);
  frame[12] = 0x88;
  frame[13] = type;
  std::memcpy(&frame[18], &number, sizeof number);
  frame.resize(bytes);
  return frame;
}

bool measured(const std::vector<std::uint8_t>& frame) {
  return is_measured(frame.data(), static_cast<std::uint32_t>(frame.size()));
}

TEST(Crossings, FramesThatAreMarkedAndCarrySomethingAreMeasured) {
  EXPECT_TRUE(measured(frame_of(kUdp, 28 + 64)));
  EXPECT_TRUE(measured(frame_of(kTcp, 52 + 1)));
}

TEST(Crossings, FramesOfLayerFrameAreMeasuredWhoseMessagesHaveAMarkedNumber) {
  constexpr std::uint32_t marked = 1U << 31U;
  for (const std::uint8_t type : {std::uint8_t{0xb5}, std::uint8_t{0xb6}}) {
    EXPECT_TRUE(measured(message_of(type, marked)));
    EXPECT_TRUE(measured(message_of(type, marked + 70'000, 1514)));
    EXPECT_FALSE(measured(message_of(type, marked - 1)));
    EXPECT_FALSE(measured(message_of(type, 1, 1514)));
  }
  EXPECT_FALSE(measured(message_of(0xb7, marked)));
  const std::vector<std::uint8_t> whole = message_of(0xb5, marked);
  for (const std::uint32_t bytes : {0U, 13U, 14U, 21U}) EXPECT_FALSE(is_measured(whole.data(), bytes)) << bytes;
}

TEST(Crossings, OtherTrafficAndMereAcknowledgementsAreNot) {
  EXPECT_FALSE(measured(frame_of(kUdp, 28 + 64, 64)));
  EXPECT_FALSE(measured(frame_of(kTcp, 52)));
  std::vector<std::uint8_t> of_version_6 = frame_of(kUdp, 28 + 64);
  of_version_6[12] = 0x86;
  EXPECT_FALSE(measured(of_version_6));
  const std::vector<std::uint8_t> whole = frame_of(kTcp, 53);
  for (const std::uint32_t bytes : {0U, 13U, 33U, 53U}) EXPECT_FALSE(is_measured(whole.data(), bytes)) << bytes;
}

TEST(Crossings, RowsComeInTheirOrderAndThoseThatFindNoRoomAreDropped) {
  CrossingSeries series;
  for (std::size_t i = 0; i < CrossingSeries::kRows + 2; ++i) {
    series.add({static_cast<std::int64_t>(i), 1, 2, 3});
  }
  std::vector<std::int64_t> arrivals;
  series.take([&](const FrameCrossing& one) { arrivals.push_back(one.arrival_ns); });
  ASSERT_EQ(arrivals.size(), CrossingSeries::kRows);
  EXPECT_EQ(arrivals.front(), 0);
  EXPECT_EQ(arrivals.back(), static_cast<std::int64_t>(CrossingSeries::kRows) - 1);
  series.add({7, 1, 2, 3});
  arrivals.clear();
  series.take([&](const FrameCrossing& one) { arrivals.push_back(one.arrival_ns); });
  EXPECT_EQ(arrivals, std::vector<std::int64_t>{7});
}

}  // namespace
}  // namespace fabricbench::emulated_switch
