#include "pattern/payload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "mpi_operation/contents.hpp"

namespace fabricbench {
namespace {

TEST(Payload, IsKnownAgainAndNoOtherIsTakenForIt) {
  for (const std::size_t size : {1U, 2U, 7U, 8U, 9U, 1000U}) {
    std::vector<std::byte> payload(size);
    fill_payload(payload, 42);
    EXPECT_TRUE(is_payload(payload, 42)) << size;
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      payload[bit / 8] ^= std::byte(1U << (bit % 8));
      EXPECT_FALSE(is_payload(payload, 42)) << "bit " << bit << " of " << size;
      payload[bit / 8] ^= std::byte(1U << (bit % 8));
    }
    EXPECT_FALSE(is_payload(payload, 43)) << size;
  }
}

TEST(Payload, IsNotTakenForItselfMovedOnByABlockOfItsOwn) {
  std::vector<std::byte> payload(1000);
  fill_payload(payload, 42);
  for (const std::ptrdiff_t shift : {1, 8, 64, 512}) {
    std::vector<std::byte> moved = payload;
    std::ranges::rotate(moved, moved.begin() + shift);
    EXPECT_FALSE(is_payload(moved, 42)) << shift;
  }
}

using Payload = std::vector<std::byte>;

Payload payload_of(std::size_t size, std::uint64_t seed) {
  Payload payload(size);
  fill_payload(payload, seed);
  return payload;
}

/// Whether an answer is as it should be where both ways do this to what they carry.
bool goes_unseen(const std::function<void(Payload&)>& change, const Payload& sent) {
  Payload answer = sent;
  change(answer);
  turn_payload(answer);
  change(answer);
  Payload expected = sent;
  turn_payload(expected);
  return answer == expected;
}

TEST(Payload, TurnedTellsEveryChangeThatBothWaysDoAlike) {
  const auto each_byte = [](auto change) {
    return [change](Payload& payload) { std::ranges::transform(payload, payload.begin(), change); };
  };
  std::vector<std::pair<std::string, std::function<void(Payload&)>>> changes = {
      {"nibbles", each_byte([](std::byte one) { return one << 4 | one >> 4; })},
      {"negative", each_byte([](std::byte one) { return std::byte(0x100 - std::to_integer<int>(one)); })},
      {"halves", [](Payload& all) { std::ranges::rotate(all, all.begin() + std::ssize(all) / 2); }},
      {"backwards", [](Payload& all) { std::ranges::reverse(all); }},
      {"first", [](Payload& all) { all.front() = ~all.front(); }},
      {"last", [](Payload& all) { all.back() = ~all.back(); }},
      {"one on", [](Payload& all) { std::ranges::rotate(all, all.begin() + 1); }},
      {"none", each_byte([](std::byte) { return std::byte{0}; })},
      {"pairs",
       [](Payload& all) {
         for (std::size_t i = 0; i + 1 < all.size(); i += 2) std::swap(all[i], all[i + 1]);
       }},
  };
  for (int flipped = 1; flipped < 0x100; ++flipped) {
    changes.emplace_back("flipped " + std::to_string(flipped),
                         each_byte([flipped](std::byte one) { return one ^ std::byte(flipped); }));
  }
  for (const std::size_t size : {2U, 3U, 4U, 8U, 64U, 1024U}) {
    for (const auto& [name, change] : changes) {
      std::size_t unseen = 0;
      for (std::uint64_t seed = 0; seed < 8; ++seed) unseen += goes_unseen(change, payload_of(size, seed)) ? 1 : 0;
      EXPECT_LE(unseen, size < 8 ? 1U : 0U) << name << " of " << size;
    }
  }
  // A byte alone has no other place.
  for (const auto& [name, change] : changes) {
    const Payload sent = payload_of(1, 42);
    Payload changed = sent;
    change(changed);
    EXPECT_TRUE(changed == sent || !goes_unseen(change, sent)) << name;
  }
}

TEST(Blocks, OfAnotherSourcePlaceOrTurnAreTold) {
  for (const std::size_t size : {1U, 64U}) {
    std::vector<std::byte> block(size);
    fill_block(block, {.source = 1, .block = 2, .turn = 3});
    EXPECT_TRUE(is_block(block, {.source = 1, .block = 2, .turn = 3})) << size;
    EXPECT_FALSE(is_block(block, {.source = 2, .block = 2, .turn = 3})) << size;
    EXPECT_FALSE(is_block(block, {.source = 1, .block = 3, .turn = 3})) << size;
    EXPECT_FALSE(is_block(block, {.source = 1, .block = 2, .turn = 4})) << size;
  }
}

TEST(Sums, OfOtherRanksElementsOrTurnsAreTold) {
  std::vector<double> sum(100);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = weight_of_first(3) * element_value(i, 5);
  EXPECT_TRUE(is_sum(sum, weight_of_first(3), 0, 5));
  EXPECT_FALSE(is_sum(sum, weight_of_first(2), 0, 5));
  EXPECT_FALSE(is_sum(sum, weight_of_first(3), 1, 5));
  EXPECT_FALSE(is_sum(sum, weight_of_first(3), 0, 6));
  sum[99] += 1;
  EXPECT_FALSE(is_sum(sum, weight_of_first(3), 0, 5));
}

TEST(SequenceTracker, CountsNothingWhenAllComesInOrder) {
  SequenceTracker tracker(10);
  for (std::uint32_t i = 10; i < 20; ++i) EXPECT_TRUE(tracker.note(i));
  const Counters counters = tracker.counters();
  EXPECT_EQ(counters.sent, 10U);
  EXPECT_EQ(counters.lost + counters.reordered + counters.duplicated, 0U);
}

TEST(SequenceTracker, AGapIsLostUntilItsMessageComesLate) {
  SequenceTracker tracker(1);
  for (const std::uint32_t i : {1U, 2U, 5U}) tracker.note(i);
  EXPECT_EQ(tracker.counters().lost, 2U);
  EXPECT_TRUE(tracker.note(3));
  EXPECT_EQ(tracker.counters().lost, 1U);
  EXPECT_EQ(tracker.counters().reordered, 1U);
}

TEST(SequenceTracker, ADoubleIsNotCountedAsArrived) {
  SequenceTracker tracker(1);
  tracker.note(1);
  tracker.note(2);
  EXPECT_FALSE(tracker.note(1));
  EXPECT_EQ(tracker.counters().duplicated, 1U);
  EXPECT_EQ(tracker.counters().lost, 0U);
}

TEST(SequenceTracker, CountingStartsAnewForTheMeasuredPhase) {
  SequenceTracker tracker(1);
  for (const std::uint32_t i : {1U, 4U, 5U}) tracker.note(i);
  tracker.start_counting();
  tracker.note(6);
  EXPECT_EQ(tracker.counters().sent, 1U);
  EXPECT_EQ(tracker.counters().lost, 0U);
}

TEST(SequenceTracker, NumbersMayWrapAround) {
  SequenceTracker tracker(0xfffffffe);
  for (const std::uint32_t i : {0xfffffffeU, 0xffffffffU, 0U, 1U}) EXPECT_TRUE(tracker.note(i));
  EXPECT_EQ(tracker.counters().sent, 4U);
  EXPECT_EQ(tracker.counters().lost, 0U);
}

}  // namespace
}  // namespace fabricbench
