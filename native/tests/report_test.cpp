#include "core/report.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "tests/merging.hpp"

namespace fabricbench {
namespace {

CellReport timed_report(std::vector<std::uint64_t> time_ns, std::vector<std::uint32_t> missed = {}) {
  CellReport report;
  report.measured.time_ns = std::move(time_ns);
  report.findings.missed = std::move(missed);
  return report;
}

CellReport turns_of(std::vector<std::uint64_t> time_ns, std::vector<Batch> batches) {
  CellReport report = timed_report(std::move(time_ns));
  report.measured.batches = std::move(batches);
  return report;
}

CellReport flood_of(std::vector<std::uint64_t> time_ns, std::vector<std::uint64_t> bytes) {
  CellReport report = timed_report(std::move(time_ns));
  report.measured.bytes = std::move(bytes);
  return report;
}

using Times = std::vector<std::uint64_t>;
using Positions = std::vector<std::uint32_t>;

TEST(Merge, AnOperationLastsAsLongAsOnItsSlowestRank) {
  const CellReport merged =
      merge({timed_report({10, 50, 30}), timed_report({20, 40, 30}), timed_report({5, 60, 10})}, Family::operation);
  EXPECT_EQ(merged.measured.time_ns, (Times{20, 60, 30}));
}

TEST(Parts, CountersAreAPartOfTheirRank) {
  CellReport report = timed_report({10});
  report.findings.counters = {{.rank = 3, .scope = CounterScope::host, .counts = {{Counter::tcp_sent, 5}}}};
  report.findings.passed = {.sent = 7, .received = 8};
  const CellParts parts = take_parts(report, Family::pair);
  EXPECT_TRUE(report.has_parts);
  EXPECT_TRUE(report.findings.counters.empty());
  const CellParts came = CellParts::unpack(parts.pack());
  ASSERT_EQ(came.counters.size(), 1U);
  EXPECT_EQ(came.counters[0].rank, 3);
  EXPECT_EQ(came.counters[0].scope, CounterScope::host);
  EXPECT_EQ(came.counters[0].counts, (Counts{{Counter::tcp_sent, 5}}));
  EXPECT_EQ(CellReport::unpack(report.pack()).findings.passed.sent, 0U) << "it stays on its rank";
}

TEST(Merge, WhatNotAllRanksHaveIsNoSample) {
  const CellReport merged = merge({timed_report({10, 50, 30}), timed_report({20, 40})}, Family::operation);
  EXPECT_EQ(merged.measured.time_ns, (Times{20, 50}));
}

TEST(Merge, ATurnLastsFromEndToEndOnWhoeverIsLastThen) {
  // Ends: 1010, 1060, 1090 and 1025, 1055, 1095, after a start at 1000 and 1005.
  const CellReport merged =
      merge({turns_of({10, 50, 30}, {{0, 1000}}), turns_of({20, 30, 40}, {{0, 1005}})}, Family::lockstep);
  EXPECT_EQ(merged.measured.time_ns, (Times{20, 35, 35}));
}

TEST(Merge, TurnsAddUpToTheTimeThatPassed) {
  // Two ranks that are slow in turn: the slowest of each turn would add up to twice the time.
  const CellReport merged =
      merge({turns_of({10, 90, 10, 90}, {{0, 1000}}), turns_of({90, 10, 90, 10}, {{0, 1000}}), timed_report({})},
            Family::lockstep);
  EXPECT_EQ(std::accumulate(merged.measured.time_ns.begin(), merged.measured.time_ns.end(), 0U), 200U);
}

TEST(Merge, ThePauseBetweenBatchesIsInNoTurn) {
  const CellReport merged =
      merge({turns_of({10, 10, 10}, {{0, 1000}, {2, 9000}}), turns_of({20, 20, 20}, {{0, 1000}, {2, 9003}})},
            Family::lockstep);
  EXPECT_EQ(merged.measured.time_ns, (Times{20, 20, 20}));
}

TEST(Merge, OfTurnsThoseCountThatAllRanksHave) {
  const CellReport merged =
      merge({turns_of({10, 10}, {{0, 1000}, {1, 2000}}), turns_of({30}, {{0, 1000}})}, Family::lockstep);
  EXPECT_EQ(merged.measured.time_ns, (Times{30}));
}

TEST(Merge, ARankWithoutTimesOfItsOwnLeavesThoseOfTheOthers) {
  const CellReport merged = merge({timed_report({10, 50}), timed_report({0, 0}), timed_report({})}, Family::operation);
  EXPECT_EQ(merged.measured.time_ns, (Times{10, 50}));
}

TEST(Merge, ASampleIsMissedIfAnyRankMissedItAndCountsOnce) {
  const CellReport merged =
      merge({timed_report({1, 2, 3, 4}, {3, 1}), timed_report({1, 2, 3, 4}, {1}), timed_report({1, 2, 3, 4}, {0})},
            Family::operation);
  EXPECT_EQ(merged.findings.missed, (Positions{0, 1, 3}));
}

TEST(Merge, NoSampleIsMissedThatIsNotThere) {
  const CellReport merged = merge({timed_report({1, 2, 3}, {2}), timed_report({1, 2}, {0})}, Family::operation);
  EXPECT_EQ(merged.findings.missed, (Positions{0}));
}

TEST(Merge, TheWindowsOfAFloodAddUpOverItsReceivers) {
  const CellReport merged = merge(
      {timed_report({}), flood_of({100, 100}, {7, 8}), flood_of({104, 98}, {1, 2}), flood_of({102, 102}, {10, 20})},
      Family::flood);
  EXPECT_EQ(merged.measured.bytes, (Times{18, 30}));
  EXPECT_EQ(merged.measured.time_ns, (Times{102, 100}));
}

TEST(Merge, CountersAddUpAndOneFailureIsTheCells) {
  CellReport fine = timed_report({1});
  fine.counters.verified = 3;
  CellReport failed = timed_report({});
  failed.counters.verified = 2;
  failed.failure = CellFailure{FailureCode::corrupted, "wrong"};
  const CellReport merged = merge({fine, failed}, Family::operation);
  EXPECT_EQ(merged.counters.verified, 5U);
  ASSERT_TRUE(merged.failure);
  EXPECT_EQ(merged.failure->code, FailureCode::corrupted);
}

/// What five ranks of a cell say, with something of everything that is joined.
std::vector<CellReport> five_reports() {
  std::vector<CellReport> reports;
  for (std::uint64_t rank = 0; rank < 5; ++rank) {
    CellReport report;
    if (rank != 1) report.measured = {{9 - rank, 3 + rank, 7, 11}, {rank, 2, 3, 4}, {{0, 5 * std::int64_t(rank)}}};
    if (rank == 3) report.measured.time_ns.pop_back();
    if (rank > 1) report.warmup = {{rank}, {1}, {{0, 1}}};
    if (rank > 2) report.failure = CellFailure{FailureCode::error, "of rank " + std::to_string(rank)};
    if (rank == 1 || rank == 4) report.outcome = {.stop = StopReason::time, .seconds = double(rank)};
    report.counters.sent = rank;
    report.findings.missed = {static_cast<std::uint32_t>(rank % 2), 3};
    report.findings.values = {{"send_buffer_bytes", 10.0 - double(rank)}, {"overlap", double(rank)}};
    report.other_hosts["n" + std::to_string(rank / 2)]["eth0"].sent = rank;
    report.port_state["n" + std::to_string(rank / 2)];
    RdmaAttachment& attachment = report.rdma.emplace_back();
    attachment.ranks = {static_cast<int>(rank)};
    attachment.host = "n" + std::to_string(rank % 2);
    reports.push_back(std::move(report));
  }
  return reports;
}

/// What is the same of two if they say the same.
std::string said_by(CellMerge merge) {
  std::string pushed;
  merge.for_each_pushed([&](const CellParts& parts) { pushed += parts.pack(); });
  return merge.finish().pack() + pushed + merge.keepers().pack();
}

TEST(Merge, RanksInTheirOrderSayTheSameInWhicheverGroupsTheyAreJoined) {
  for (const Family family : {Family::pair, Family::lockstep, Family::flood, Family::operation, Family::matrix}) {
    const std::vector<CellReport> reports = five_reports();
    const auto of = [&](std::size_t begin, std::size_t end) {
      CellMerge merge(family);
      for (std::size_t rank = begin; rank < end; ++rank) {
        CellReport report = reports[rank];
        CellParts parts{.warmup = {}, .measured = {}, .channels = std::vector<ChannelReport>(rank + 1)};
        report.has_parts = true;
        CellMerge one(family, std::move(report));
        one.push_parts(static_cast<int>(rank), parts, rank == 2 ? 0 : 1'000'000);
        merge.join(std::move(one));
      }
      // As it comes from another rank.
      return CellMerge::unpack(merge.pack());
    };
    const std::string one_by_one = said_by(of(0, 5));
    for (std::size_t one = 0; one <= 5; ++one) {
      for (std::size_t other = one; other <= 5; ++other) {
        CellMerge first = of(0, one);
        CellMerge second = of(one, other);
        second.join(of(other, 5));
        first.join(CellMerge::unpack(second.pack()));
        EXPECT_EQ(said_by(std::move(first)), one_by_one) << name_of(family) << ' ' << one << ' ' << other;
      }
    }
  }
}

TEST(Merge, PartsComeWithTheReportWhereTheyAreSmallElseTheirRankKeepsThem) {
  const auto merged_with = [](std::size_t most_bytes) {
    CellReport report;
    report.findings.channels.resize(3);
    CellParts parts = take_parts(report, Family::flood);
    CellMerge merge(Family::flood, std::move(report));
    EXPECT_EQ(merge.push_parts(7, parts, most_bytes), most_bytes == 0);
    EXPECT_EQ(parts.channels.size(), most_bytes == 0 ? 3U : 0U);
    return merge;
  };
  const auto pushed_channels = [](const CellMerge& merge) {
    std::vector<std::size_t> counts;
    merge.for_each_pushed([&](const CellParts& parts) { counts.push_back(parts.channels.size()); });
    return counts;
  };
  EXPECT_EQ(pushed_channels(merged_with(10'000)), std::vector<std::size_t>{3});
  EXPECT_TRUE(merged_with(10'000).keepers().empty());
  EXPECT_TRUE(pushed_channels(merged_with(0)).empty());
  EXPECT_EQ(merged_with(0).keepers().expanded(), std::vector<int>{7});
}

TEST(Merge, AReportSurvivesPacking) {
  CellReport report = flood_of({1, 2}, {3, 4});
  report.measured.batches = {{1, -7}};
  report.findings.missed = {1};
  report.findings.values = {{"overlap", 0.5}};
  const CellReport unpacked = CellReport::unpack(report.pack());
  EXPECT_EQ(unpacked.measured.time_ns, report.measured.time_ns);
  EXPECT_EQ(unpacked.measured.bytes, report.measured.bytes);
  ASSERT_EQ(unpacked.measured.batches.size(), 1U);
  EXPECT_EQ(unpacked.measured.batches.front().first, 1U);
  EXPECT_EQ(unpacked.measured.batches.front().start_ns, -7);
  EXPECT_EQ(unpacked.findings.missed, report.findings.missed);
  EXPECT_EQ(unpacked.findings.values, report.findings.values);
}

TEST(Merge, ALargeReportIsItsNumbersAndHardlyMore) {
  // A tree of a million values takes 16 bytes each, and its destructor as much again, where nothing may be thrown.
  constexpr std::size_t samples = 100'000;
  CellReport report;
  report.measured.time_ns.assign(samples, std::uint64_t{1} << 40U);
  report.findings.missed.assign(samples, 1U << 30U);
  ChannelReport channel;
  channel.source = 1;
  channel.flow = 2;
  channel.quantity = Quantity::one_way;
  channel.lost = 5;
  channel.time_ns.assign(samples, -(std::int64_t{1} << 40U));
  report.findings.channels = {channel, ChannelReport{}};
  const std::string packed = report.pack();
  EXPECT_LT(packed.size(), samples * (8 + 4 + 8) + 2000);
  const CellReport unpacked = CellReport::unpack(packed);
  EXPECT_EQ(unpacked.measured.time_ns, report.measured.time_ns);
  EXPECT_EQ(unpacked.findings.missed, report.findings.missed);
  ASSERT_EQ(unpacked.findings.channels.size(), 2U);
  const ChannelReport& same = unpacked.findings.channels.front();
  EXPECT_EQ(std::tuple(same.source, same.flow, same.quantity, same.lost),
            std::tuple(1, std::size_t{2}, Quantity::one_way, std::uint64_t{5}));
  EXPECT_EQ(same.time_ns, channel.time_ns);
}

TEST(Merge, AReportThatIsCutOrTooLongIsNone) {
  const std::string packed = flood_of({1, 2}, {3, 4}).pack();
  for (std::size_t bytes = 0; bytes < packed.size(); ++bytes) {
    EXPECT_ANY_THROW(CellReport::unpack(std::string_view(packed).substr(0, bytes))) << bytes;
  }
  EXPECT_ANY_THROW(CellReport::unpack(packed + "x"));
}

}  // namespace
}  // namespace fabricbench
