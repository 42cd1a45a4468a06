// EP, embarrassingly parallel: Gaussian deviates by the polar method.
//
// n = 2^M pairs of uniform numbers (x, y) in (-1, 1)^2 are taken in order from one stream. Where t = x^2 + y^2 <= 1,
// X = x f and Y = y f with f = sqrt(-2 ln t / t) are independent standard normal deviates (Marsaglia's polar method).
// Asked for: the sums of |X| and |Y|, and for l = 0..9 how many pairs lie in the square ring l <= max(|X|, |Y|) < l
// + 1. The sums of absolute values are those of NPB 3.4.2 and newer; before, the signed deviates were summed.
//
// The stream is cut into batches of 2^16 pairs; any place in it is reached in O(log) multiplications. Each rank takes a
// block of consecutive batches, so any number of ranks up to the number of batches will do. The network carries two
// reductions at the end: EP shows what the processors can do when nothing is asked of the network.
#include <array>
#include <cstddef>
#include <string>

#include "kernel/npb/ep_batch.hpp"
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

namespace {

struct Problem {
  unsigned log2_pairs;
  double sum_x, sum_y;
  std::uint64_t accepted;
  std::array<std::uint64_t, 7> rings;  // 0 to 6, known up to class B; beyond ring 6 none is expected
};

constexpr double tolerance = 1e-8;

constexpr std::array<Problem, 6> problems{{
    {24, 1.051299420395306e7, 1.051517131857535e7, 13176389, {6140517, 5865300, 1100361, 68546, 1648, 17, 0}},
    {25, 2.102505525182392e7, 2.103162209578822e7, 26354769, {12281576, 11729692, 2202726, 137368, 3371, 36, 0}},
    {28, 1.682235632304711e8, 1.682195123368299e8, 210832767, {98257395, 93827014, 17611549, 1110028, 26536, 245, 0}},
    {30,
     6.728927543423024e8,
     6.728951822504275e8,
     843345606,
     {393058470, 375280898, 70460742, 4438852, 105691, 948, 5}},
    {32, 2.691444083862931e9, 2.691519118724585e9, 3373275903, {}},
    {36, 4.306350280812112e10, 4.306347571859157e10, 53972171957, {}},
}};

std::uint64_t batches_of(const Problem& problem) {
  return std::uint64_t{1} << (problem.log2_pairs - ep_log2_batch_pairs);
}

std::optional<std::string> refusal(Class letter, int ranks) {
  const auto batches = batches_of(of_class(problems, letter));
  if (static_cast<std::uint64_t>(ranks) <= batches) return std::nullopt;
  return "EP deals " + std::to_string(batches) + " batches of random numbers in class " + static_cast<char>(letter) +
         ", which leaves some of " + std::to_string(ranks) + " ranks without any; take 1 to " + std::to_string(batches);
}

// Batches are added one after the other, so that the rounding error of the sums grows with the number of batches and
// not with that of pairs.
GaussianTally tally_own_batches(MPI_Comm communicator, std::uint64_t batches) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  const auto divisor = static_cast<std::uint64_t>(ranks);
  const auto index = static_cast<std::uint64_t>(rank);
  const auto share = batches / divisor;
  const auto surplus = batches % divisor;
  const auto first = index * share + std::min(index, surplus);
  const auto end = first + share + (index < surplus ? 1 : 0);
  GaussianTally own;
  for (auto batch = first; batch < end; ++batch) own.add(tally_batch(batch));
  return own;
}

GaussianTally sum_over_ranks(MPI_Comm communicator, const GaussianTally& own) {
  const std::array<double, 2> own_sums{own.sum_x, own.sum_y};
  std::array<double, 2> sums{};
  GaussianTally total;
  MPI_Allreduce(own_sums.data(), sums.data(), 2, MPI_DOUBLE, MPI_SUM, communicator);
  MPI_Allreduce(own.rings.data(), total.rings.data(), static_cast<int>(own.rings.size()), MPI_UINT64_T, MPI_SUM,
                communicator);
  total.sum_x = sums[0];
  total.sum_y = sums[1];
  return total;
}

std::vector<Check> compare(const Problem& problem, const GaussianTally& total) {
  std::uint64_t accepted = 0;
  for (const auto pairs : total.rings) accepted += pairs;
  std::vector<Check> checks{
      {"sum of |X|", total.sum_x, problem.sum_x, tolerance},
      {"sum of |Y|", total.sum_y, problem.sum_y, tolerance},
      {"pairs accepted", static_cast<double>(accepted), static_cast<double>(problem.accepted), 0},
  };
  if (problem.rings[0] == 0) return checks;
  for (std::size_t ring = 0; ring < total.rings.size(); ++ring) {
    const auto expected = ring < problem.rings.size() ? problem.rings[ring] : 0;
    checks.push_back({"pairs in ring " + std::to_string(ring), static_cast<double>(total.rings[ring]),
                      static_cast<double>(expected), 0});
  }
  return checks;
}

std::uint64_t fingerprint_of(const GaussianTally& total) {
  auto hash = fingerprint(&total.sum_x, sizeof total.sum_x);
  hash = fingerprint(&total.sum_y, sizeof total.sum_y, hash);
  return fingerprint(total.rings.data(), sizeof total.rings, hash);
}

Result run(MPI_Comm communicator, Class letter) {
  const auto& problem = of_class(problems, letter);
  sum_over_ranks(communicator, tally_batch(0));  // untimed: code and connections are warm afterwards

  TimedSection timed(communicator);
  const auto total = sum_over_ranks(communicator, tally_own_batches(communicator, batches_of(problem)));
  const double seconds = timed.end();

  return {.seconds = seconds,
          .operations = static_cast<double>(std::uint64_t{1} << (problem.log2_pairs + 1)),
          .operation_unit = "random numbers generated",
          .size = "2^" + std::to_string(problem.log2_pairs),
          .iterations = 1,
          .checks = compare(problem, total),
          .fingerprint = fingerprint_of(total)};
}

}  // namespace

const Kernel ep{
    .name = "ep",
    .summary = "Gaussian deviates from random numbers: the processors alone, one small reduction at the end",
    .refusal = refusal,
    .run = run};

}  // namespace fabricbench::npb
