// MG: the Poisson equation A u = v on a periodic cube of n^3 points, n = 2^L, by V-cycles of multigrid. A is a 27-point
// Laplacian with no weight on the faces; v is +1 at ten points, -1 at ten others and 0 elsewhere.
//
// From u = 0, each iteration adds to u the V-cycle's approximate solution M r of A e = r for r = v - A u. On the
// coarsest grid, of 2^3 points, M = S, an approximate inverse of A that damps rough errors. On any other, with P the
// full-weighting restriction and Q its transpose up to a factor, the trilinear prolongation: z = Q M P r, then z += S
// (r - A z). The L2 norm of v - A u after the last iteration is the result.
//
// Blocks of points per rank, in up to three dimensions; a level's blocks are made of the children of the coarser
// level's, so restriction and prolongation need neighbours' points only through ghosts. On the coarsest levels, where
// blocks would be smaller than their ghosts, every rank has all points and computes all of them. Per level and V-cycle
// a rank exchanges one layer of r on the way down (but on the finest level, where r is only ever needed next to its
// computation), two of the correction on the way up; once per V-cycle, all ranks gather the residual of the first level
// that all have.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/npb/mg_grid.hpp"
#include "kernel/npb/mg_sweeps.hpp"
#include "kernel/npb/npb.hpp"
#include "kernel/npb/random.hpp"

namespace fabricbench::npb {

namespace multigrid {

namespace {

struct Problem {
  int level;  // 2^level points per dimension
  int iterations;
  double residual;  // after them
  Stencil smoother;
};

constexpr Stencil small_smoother{-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};
constexpr Stencil large_smoother{-3.0 / 17, 1.0 / 33, -1.0 / 61, 0};

constexpr std::array<Problem, 6> problems{{
    {5, 4, 0.5307707005734e-4, small_smoother},
    {7, 4, 0.6467329375339e-5, small_smoother},
    {8, 4, 0.2433365309069e-5, small_smoother},
    {8, 20, 0.1800564401355e-5, large_smoother},
    {9, 20, 0.5706732285740e-6, large_smoother},
    {10, 50, 0.1583275060440e-9, large_smoother},
}};

/// A point and its random value. Order is that of the values; no two are the same.
struct Charge {
  double value;
  std::uint64_t place;
  bool operator<(const Charge& other) const { return value < other.value; }
};
constexpr std::size_t charges_per_sign = 10;
using Charges = std::array<Charge, 2 * charges_per_sign>;  // ascending: the smallest values, then the largest

/// The extreme ones of the sorted charges and one more.
void take_if_extreme(Charges& charges, const Charge& charge) {
  const auto middle = charges.begin() + charges_per_sign;
  if (charge < *(middle - 1)) {
    const auto place = std::upper_bound(charges.begin(), middle, charge);
    std::move_backward(place, middle - 1, middle);
    *place = charge;
  }
  if (*middle < charge) {
    const auto place = std::upper_bound(middle, charges.end(), charge);
    std::move(middle + 1, place, middle);
    *(place - 1) = charge;
  }
}

Charges no_charges() {
  Charges charges{};
  charges.fill({2, 0});  // random values lie in (0, 1)
  std::fill(charges.begin() + charges_per_sign, charges.end(), Charge{-1, 0});
  return charges;
}

/// The points of this rank with the extreme values.
Charges find_charges(const Decomposition& decomposition, int level) {
  constexpr std::uint64_t seed = 314159265;
  Charges charges = no_charges();
  for (std::ptrdiff_t k = 0; k < decomposition.count(level, 2); ++k) {
    for (std::ptrdiff_t j = 0; j < decomposition.count(level, 1); ++j) {
      const std::ptrdiff_t line = ((decomposition.offset(level, 2) + k) << level) + decomposition.offset(level, 1) + j;
      auto place = static_cast<std::uint64_t>((line << level) + decomposition.offset(level, 0));
      Random random(seed);
      random.skip(place);
      for (std::ptrdiff_t i = 0; i < decomposition.count(level, 0); ++i)
        take_if_extreme(charges, {random.next(), place++});
    }
  }
  return charges;
}

/// The points of all ranks with the extreme values.
Charges gather_charges(const Decomposition& decomposition, const Charges& own) {
  std::vector<Charges> candidates(static_cast<std::size_t>(decomposition.ranks()));
  MPI_Allgather(&own, sizeof own, MPI_BYTE, candidates.data(), sizeof own, MPI_BYTE, decomposition.communicator());
  Charges charges = no_charges();
  for (const Charges& some : candidates) {
    for (const Charge& charge : some) take_if_extreme(charges, charge);
  }
  return charges;
}

void set_charges(const Decomposition& decomposition, int level, Field& v) {
  const Charges charges = gather_charges(decomposition, find_charges(decomposition, level));
  const auto side = std::uint64_t{1} << static_cast<unsigned>(level);
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const std::uint64_t place = charges[i].place;
    const std::array<std::uint64_t, 3> point{place % side, place / side % side, place / side / side};
    std::array<std::ptrdiff_t, 3> at{};
    bool is_own = true;
    for (std::size_t dimension = 0; dimension < 3; ++dimension) {
      at[dimension] = static_cast<std::ptrdiff_t>(point[dimension]) - decomposition.offset(level, dimension);
      is_own = is_own && at[dimension] >= 0 && at[dimension] < decomposition.count(level, dimension);
    }
    if (is_own) v.line(at[1], at[2])[at[0]] = i < charges_per_sign ? -1 : 1;
  }
}

class Solver {
 public:
  Solver(MPI_Comm communicator, const Problem& problem)
      : finest_(static_cast<std::size_t>(problem.level)),
        divided_(communicator, grid_of(communicator), base_of(communicator, problem)),
        alone_(Decomposition::alone()),
        base_(static_cast<std::size_t>(divided_.base())) {
    for (int level = 0; level <= problem.level; ++level) {
      const Decomposition& decomposition = decomposition_of(static_cast<std::size_t>(level));
      solution_.emplace_back(decomposition, level);
      right_.emplace_back(decomposition, level);
    }
    own_base_ = Field(divided_, divided_.base());
    const auto largest = [&](std::size_t dimension) {
      return std::max(solution_[finest_].size(dimension), solution_[base_].size(dimension));
    };
    sweeps_.emplace(largest(0), largest(2), problem.smoother);
    set_charges(divided_, problem.level, right_[finest_]);
    exchange_(divided_, right_[finest_], 1);
  }

  void start() { solution_[finest_].clear(); }

  /// One V-cycle; the norm of the residual before it where `norm` is given.
  void iterate(double* norm = nullptr) {
    double squared = 0;
    sweeps_->restrict_residual(solution_[finest_], right_[finest_], coarse_residual(finest_),
                               norm != nullptr ? &squared : nullptr);
    if (norm != nullptr) *norm = norm_of(squared);
    share_residual(finest_);
    for (std::size_t level = finest_ - 1; level > 1; --level) {
      sweeps_->restrict_field(right_[level], coarse_residual(level));
      share_residual(level);
    }
    sweeps_->smooth(right_[1], solution_[1]);
    exchange_(decomposition_of(1), solution_[1], ghosts);
    for (std::size_t level = 2; level <= finest_; ++level) {
      sweeps_->correct(solution_[level], right_[level], solution_[level - 1], place_in_coarser(level),
                       level == finest_);
      exchange_(decomposition_of(level), solution_[level], ghosts);
    }
  }

  double residual_norm() { return norm_of(sweeps_->squared_residual(solution_[finest_], right_[finest_])); }

  /// Of the solution's bits on all ranks.
  std::uint64_t solution_fingerprint() {
    const Field& u = solution_[finest_];
    std::uint64_t hash = fingerprint_start;
    for (std::ptrdiff_t k = 0; k < u.size(2); ++k) {
      double plane = 0;
      for (std::ptrdiff_t j = 0; j < u.size(1); ++j) {
        for (std::ptrdiff_t i = 0; i < u.size(0); ++i) plane += u.line(j, k)[i];
      }
      hash = fingerprint(&plane, sizeof plane, hash);
    }
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(divided_.ranks()));
    MPI_Allgather(&hash, 1, MPI_UINT64_T, hashes.data(), 1, MPI_UINT64_T, divided_.communicator());
    return fingerprint(hashes.data(), hashes.size() * sizeof hash);
  }

 private:
  static ProcessGrid grid_of(MPI_Comm communicator) {
    int ranks = 0;
    MPI_Comm_size(communicator, &ranks);
    return process_grid(ranks);
  }
  static int base_of(MPI_Comm communicator, const Problem& problem) {
    return base_level(grid_of(communicator), problem.level);
  }
  const Decomposition& decomposition_of(std::size_t level) const { return level > base_ ? divided_ : alone_; }

  /// Where the residual of the level below `level` goes: to what a rank has of it, also if it is to have all of it.
  Field& coarse_residual(std::size_t level) { return level - 1 == base_ ? own_base_ : right_[level - 1]; }
  void share_residual(std::size_t level) {
    if (level - 1 == base_) gather(divided_, own_base_, right_[base_]);
    exchange_(decomposition_of(level - 1), right_[level - 1], 1);
  }
  Offset place_in_coarser(std::size_t level) const {
    if (level - 1 != base_) return {0, 0, 0};
    const int base = divided_.base();
    return {divided_.offset(base, 0), divided_.offset(base, 1), divided_.offset(base, 2)};
  }
  double norm_of(double own_squared) const {
    double squared = 0;
    MPI_Allreduce(&own_squared, &squared, 1, MPI_DOUBLE, MPI_SUM, divided_.communicator());
    return std::sqrt(std::ldexp(squared, -3 * static_cast<int>(finest_)));
  }

  std::size_t finest_;
  Decomposition divided_;
  Decomposition alone_;
  std::size_t base_;             // the finest level that every rank has whole
  std::vector<Field> solution_;  // per level: z, u on the finest
  std::vector<Field> right_;     // per level: r, v on the finest
  Field own_base_;               // a rank's own part of r on the base level
  GhostExchange exchange_;
  std::optional<Sweeps> sweeps_;
};

std::optional<std::string> refusal(Class size, int ranks) {
  const int most = 1 << (of_class(problems, size).level - 1);
  const auto grid = process_grid(ranks);
  if (*std::max_element(grid.begin(), grid.end()) <= most) return std::nullopt;
  return "mg: " + std::to_string(ranks) + " ranks leave some without two points per dimension of the " +
         std::to_string(2 * most) + "^3 points; needed is a count of ranks that is a product of three factors up to " +
         std::to_string(most);
}

Result run(MPI_Comm communicator, Class size) {
  const Problem& given = of_class(problems, size);
  Solver solver(communicator, given);
  solver.start();
  solver.iterate();  // the warm-up that the rules ask for
  solver.residual_norm();
  solver.start();
  TimedSection timed(communicator);
  double first_norm = 0;
  for (int iteration = 0; iteration < given.iterations; ++iteration)
    solver.iterate(iteration == 0 ? &first_norm : nullptr);
  const double norm = solver.residual_norm();
  Result result;
  result.seconds = timed.end();
  const double points = std::ldexp(1, 3 * given.level);
  const std::string side = std::to_string(1 << given.level);
  result.operations = 58 * given.iterations * points;
  result.size = side + " x " + side + " x " + side;
  result.iterations = given.iterations;
  result.checks = {{"residual", norm, given.residual, 1e-8}};
  result.fingerprint = fingerprint(&norm, sizeof norm, solver.solution_fingerprint());
  return result;
}

}  // namespace

}  // namespace multigrid

const Kernel mg{"mg", "multigrid on a cube: ghost layers of all sizes to all neighbours", multigrid::refusal,
                multigrid::run};

}  // namespace fabricbench::npb
