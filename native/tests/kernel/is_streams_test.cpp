#include "kernel/npb/is_streams.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace fabricbench::npb {
namespace {

constexpr Key values = 1U << 16U;

std::vector<Key> some_keys(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<Key> quarter(0, values / 4 - 1);
  std::vector<Key> keys(count);
  for (Key& key : keys) key = quarter(random) + quarter(random) + quarter(random) + quarter(random);
  return keys;
}

// Streams that begin at the values given, each as long as its keys are many.
std::vector<Stream> streams_from(const std::vector<Key>& least, const std::vector<Key>& keys) {
  std::vector<Stream> streams;
  for (const Key value : least) {
    const auto below = std::ranges::count_if(keys, [value](Key key) { return key < value; });
    streams.push_back({value, static_cast<std::size_t>(below)});
  }
  return streams;
}

std::vector<Key> sorted_into(const std::vector<Stream>& streams, const std::vector<Key>& keys) {
  std::vector<Key> to(keys.size() + spare_keys);
  std::vector<Key> scratch(to.size());
  sort_into_streams(keys, streams, to.data(), scratch.data());
  to.resize(keys.size());
  return to;
}

void expect_sorted(const std::vector<Key>& least, const std::vector<Key>& keys) {
  const auto streams = streams_from(least, keys);
  auto found = sorted_into(streams, keys);
  EXPECT_EQ(found, sorted_into(streams, keys));
  // With each stream sorted by itself, all must be: no key is in a wrong one, and none is lost or doubled.
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const auto end = s + 1 < streams.size() ? streams[s + 1].begin : found.size();
    std::sort(found.begin() + static_cast<std::ptrdiff_t>(streams[s].begin),
              found.begin() + static_cast<std::ptrdiff_t>(end));
  }
  auto expected = keys;
  std::ranges::sort(expected);
  EXPECT_EQ(found, expected);
}

std::vector<Key> evenly(std::size_t streams) {
  std::vector<Key> least(streams);
  for (std::size_t s = 0; s < streams; ++s) least[s] = static_cast<Key>(values * s / streams);
  return least;
}

TEST(Streams, AnyNumberOfThemGetTheirKeys) {
  for (const std::size_t streams : {1U, 2U, 3U, 7U, 8U, 9U, 10U, 63U, 64U, 65U, 128U, 512U, 513U}) {
    SCOPED_TRACE(streams);
    expect_sorted(evenly(streams), some_keys(20'000, 1));
  }
}

TEST(Streams, AnyNumberOfKeysComesThrough) {
  for (std::size_t keys = 0; keys < 70; ++keys) {
    for (const std::size_t streams : {1U, 4U, 20U}) {
      SCOPED_TRACE(testing::Message() << keys << " keys, " << streams << " streams");
      expect_sorted(evenly(streams), some_keys(keys, static_cast<unsigned>(keys)));
    }
  }
}

TEST(Streams, MayBeEmptyOrHaveAllTheirKeysAtOneEnd) {
  const auto keys = some_keys(5'000, 2);
  expect_sorted({0, 1, 2, values - 2, values - 1}, keys);
  auto rising = keys;
  std::ranges::sort(rising);
  expect_sorted(evenly(6), rising);
  expect_sorted(evenly(40), {rising.rbegin(), rising.rend()});
  expect_sorted(evenly(8), std::vector<Key>(1'000, values / 2));
}

TEST(Streams, TheBordersBelongToTheUpperOne) { expect_sorted({0, 100, 200}, {99, 100, 101, 199, 200, 201, 0, 300}); }

}  // namespace
}  // namespace fabricbench::npb
