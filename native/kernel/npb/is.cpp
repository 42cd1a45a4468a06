// IS, integer sort: the ranks of integer keys.
//
// N = 2^a keys in [0, B), B = 2^b, are each the integer part of B/4 times the sum of four uniform numbers, thus bell-
// shaped about B/2. The rank of a key is the number of keys smaller than it. In each of ten iterations two keys are
// changed and all ranks are found anew; the ranks of five keys are known and checked each time. After the last
// iteration the keys are placed by their ranks, which must sort them.
//
// Each rank begins with N/p consecutive keys. Keys fall into buckets by their top bits; the counts of all buckets are
// summed over ranks, and consecutive buckets are dealt out so that each rank has about N/p keys. All keys then travel
// to the rank that owns their bucket (an all-to-all of keys), which counts the keys of each value: the sums of the
// counts are the ranks. Nearly all keys change hands in every iteration: IS asks for bandwidth in all-to-all exchanges,
// and for integer work and random access in memory. Any number of ranks will do that leaves each a few buckets.
#include <array>
#include <limits>
#include <string>

#include "kernel/npb/is_ranking.hpp"
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

namespace {

constexpr int iterations = 10;

// The expected rank of test key j in iteration t is reference + sign (t + offset).
struct TestKey {
  std::int64_t reference;
  int sign;
};

struct Problem {
  KeySpace space;
  int most_ranks;
  std::array<TestKey, is_test_keys> keys;
  std::array<int, is_test_keys> offsets;

  std::int64_t expected_rank(std::size_t key, int iteration) const {
    return keys[key].reference + keys[key].sign * (iteration + offsets[key]);
  }
};

constexpr std::array<Problem, 6> problems{{
    {{16, 11, 9, {48427, 17148, 23627, 62548, 4431}}, 128, {{{0, 1}, {18, 1}, {346, 1}, {64917, -1}, {65463, -1}}}, {}},
    {{20, 16, 10, {357773, 934767, 875723, 898999, 404505}},
     1024,
     {{{1249, 1}, {11698, 1}, {1039987, -1}, {1043896, -1}, {1048018, -1}}},
     {-2, -2, 0, 0, 0}},
    {{23, 19, 10, {2112377, 662041, 5336171, 3642833, 4250760}},
     1024,
     {{{104, 1}, {17523, 1}, {123928, 1}, {8288932, -1}, {8388264, -1}}},
     {-1, -1, -1, -1, -1}},
    {{25, 21, 10, {41869, 812306, 5102857, 18232239, 26860214}},
     1024,
     {{{33422937, -1}, {10244, 1}, {59149, 1}, {33135281, -1}, {99, 1}}},
     {}},
    {{27, 23, 10, {44172927, 72999161, 74326391, 129606274, 21736814}},
     1024,
     {{{61147, 1}, {882988, 1}, {266290, 1}, {133997595, -1}, {133525895, -1}}},
     {}},
    {{31, 27, 10, {1317351170, 995930646, 1157283250, 1503301535, 1453734525}},
     1024,
     {{{1, 1}, {36538729, 1}, {1978098519, -1}, {2145192618, -1}, {2147425337, -1}}},
     {}},
}};

std::optional<std::string> refusal(Class letter, int ranks) {
  const auto& problem = of_class(problems, letter);
  const int most_ranks = problem.most_ranks;
  const std::int64_t keys = std::int64_t{1} << problem.space.log2_keys;
  if (keys / ranks > std::numeric_limits<int>::max()) {
    return "IS counts the keys of a rank in 32 bits, and class " + std::string(1, static_cast<char>(letter)) + " has " +
           std::to_string(keys) + ": too many for " + std::to_string(ranks) + " rank; take 2 to " +
           std::to_string(most_ranks);
  }
  if (ranks <= most_ranks) return std::nullopt;
  return "IS splits the keys of class " + std::string(1, static_cast<char>(letter)) + " into too few buckets for " +
         std::to_string(ranks) + " ranks; take 1 to " + std::to_string(most_ranks);
}

using AllTestRanks = std::array<Ranking::TestRanks, iterations>;

AllTestRanks sum_over_ranks(MPI_Comm communicator, const AllTestRanks& own) {
  AllTestRanks all{};
  MPI_Allreduce(own.data(), all.data(), iterations * static_cast<int>(is_test_keys), MPI_INT64_T, MPI_SUM,
                communicator);
  return all;
}

std::vector<Check> compare(const Problem& problem, const AllTestRanks& found, const Ranking::Order& order) {
  std::vector<Check> checks;
  for (int t = 1; t <= iterations; ++t) {
    for (std::size_t j = 0; j < is_test_keys; ++j) {
      checks.push_back({"iteration " + std::to_string(t) + " rank of key " + std::to_string(j + 1),
                        static_cast<double>(found[static_cast<std::size_t>(t - 1)][j]),
                        static_cast<double>(problem.expected_rank(j, t)), 0});
    }
  }
  checks.push_back({"keys placed", static_cast<double>(order.keys),
                    static_cast<double>(std::int64_t{1} << problem.space.log2_keys), 0});
  checks.push_back({"keys out of order", static_cast<double>(order.out_of_order), 0, 0});
  return checks;
}

Result run(MPI_Comm communicator, Class letter) {
  const auto& problem = of_class(problems, letter);
  Ranking ranking(communicator, problem.space);
  ranking.rank_keys(1);  // untimed: buffers have grown and pages are there afterwards

  AllTestRanks own{};
  TimedSection timed(communicator);
  for (int t = 1; t <= iterations; ++t) own[static_cast<std::size_t>(t - 1)] = ranking.rank_keys(t);
  const double seconds = timed.end();

  const auto found = sum_over_ranks(communicator, own);
  const auto order = ranking.place_keys();
  return {
      .seconds = seconds,
      .operations = static_cast<double>(iterations) * static_cast<double>(std::int64_t{1} << problem.space.log2_keys),
      .operation_unit = "keys ranked",
      .size = "2^" + std::to_string(problem.space.log2_keys),
      .iterations = iterations,
      .checks = compare(problem, found, order),
      .fingerprint = fingerprint(&order.digest, sizeof order.digest, fingerprint(found.data(), sizeof found))};
}

}  // namespace

const Kernel is{.name = "is",
                .summary = "Ranks of integer keys: all-to-all exchange of nearly all data, random access in memory",
                .refusal = refusal,
                .run = run};

}  // namespace fabricbench::npb
