// fabricbench-hpcg: conjugate gradients with a multigrid preconditioner, the problem of the High Performance Conjugate
// Gradient benchmark (HPCG; Dongarra, Heroux and Luszczek, SAND2013-8752 and "HPCG Benchmark: a New Metric for Ranking
// High Performance Computing Systems").
//
// Each rank has nx x ny x nz points of a grid in three dimensions, of which the matrix has a row each: 26 for the point
// itself and -1 for each point around it (problem.hpp). An iteration exchanges layers of points with up to 26
// neighbours eleven times, on grids from the whole to an eighth of its points along each dimension, and sums three
// numbers over all ranks (solver.hpp): small messages between neighbours and tiny reductions.
//
// A set is 50 iterations from zero, and the sets are counted, never the seconds, so that all fabrics do equal work. The
// variant `reference` has the matrix as rows with indices and plain loops (rows.hpp), `optimised` has it by directions
// and takes eight rows at once (diagonals.hpp). Both send the same messages. Where the optimised one needs more
// iterations to come to the residual of the reference's 50, its sets have so many, and are counted as 50.
//
// Verified as the official program does: symmetry of the matrix and of the preconditioner, iterations with an
// exaggerated diagonal, the residual of the sets, and its variance over them. Counted are the official operations; the
// rate has in its time a tenth of the seconds of setting up for each set, as the official rating does.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/frame/kernel.hpp"
#include "kernel/hpcg/diagonals.hpp"
#include "kernel/hpcg/rows.hpp"
#include "kernel/hpcg/solver.hpp"

namespace {

using namespace fabricbench;
using namespace fabricbench::kernel;

constexpr int set_iterations = 50;
constexpr int most_iterations = 10 * set_iterations;
constexpr double residual_slack = 1e-6;  // relative, of what an optimised set may have over the reference's residual
constexpr double most_variance = 1e-6;   // of the reduction over the sets
constexpr double set_up_share = 0.1;     // of the seconds of setting up, for each set

constexpr int coarsening = 1 << (hpcg::levels - 1);
constexpr std::int64_t most_points = 1024;
constexpr std::int64_t usual_points = 32;
constexpr std::int64_t most_sets = 100'000;
constexpr std::int64_t usual_sets = 3;
constexpr int most_aspect = 8;  // of a box's longest side to its shortest

constexpr std::array<std::string_view, 2> variants{"reference", "optimised"};

std::string product_text(const std::array<std::int64_t, 3>& factors) {
  return std::to_string(factors[0]) + " x " + std::to_string(factors[1]) + " x " + std::to_string(factors[2]);
}

double slowest(double seconds, MPI_Comm communicator) {
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, communicator);
  return seconds;
}

/// A solver, and the seconds that the slowest rank took to make it.
template <class Matrix>
struct Made {
  explicit Made(const hpcg::Geometry& geometry) {
    const double begin = MPI_Wtime();
    solver = std::make_unique<hpcg::Solver<Matrix>>(geometry);
    seconds = slowest(MPI_Wtime() - begin, geometry.communicator());
  }
  std::unique_ptr<hpcg::Solver<Matrix>> solver;
  double seconds = 0;
};

class ConjugateGradients final : public Problem {
 public:
  explicit ConjugateGradients(const Arguments& arguments)
      : sets_(static_cast<int>(arguments.number("--sets", 1, most_sets, usual_sets))),
        variant_(arguments.word("--variant", variants, variants[1])) {
    constexpr std::array<std::string_view, 3> sides{"--nx", "--ny", "--nz"};
    for (std::size_t side = 0; side < sides.size(); ++side) {
      const std::int64_t usual = side == 0 ? usual_points : points_[0];
      const std::int64_t found = arguments.number(sides[side], 1, most_points, usual);
      if (found % coarsening != 0) {
        throw UsageError{std::string(sides[side]) + " needs a multiple of " + std::to_string(coarsening) + ", found " +
                         std::to_string(found) + ": the coarsest of the " + std::to_string(hpcg::levels) +
                         " grids has every eighth point of it; take " +
                         std::to_string((found + coarsening - 1) / coarsening * coarsening)};
      }
      points_[side] = static_cast<int>(found);
    }
    const auto [least, most] = std::ranges::minmax(points_);
    if (most > most_aspect * least) {
      throw UsageError{"--nx " + std::to_string(points_[0]) + " --ny " + std::to_string(points_[1]) + " --nz " +
                       std::to_string(points_[2]) + ": the longest side may be " + std::to_string(most_aspect) +
                       " times the shortest, as the official program asks; take a box that is more like a cube"};
    }
  }

  std::vector<Parameter> parameters() const override {
    return {{"nx", std::int64_t{points_[0]}},
            {"ny", std::int64_t{points_[1]}},
            {"nz", std::int64_t{points_[2]}},
            {"sets", std::int64_t{sets_}},
            {"variant", std::string(variant_)}};
  }

  Result run(MPI_Comm communicator) const override {
    const hpcg::Geometry geometry(communicator, points_);
    std::vector<double> history(most_iterations + 1);
    Made<hpcg::Rows> reference(geometry);
    double reduction = 0;  // of the residual, by the reference's iterations of a set
    {
      auto b = reference.solver->make_vector();
      auto x = reference.solver->make_vector();
      fill_right_side(geometry, b.data());
      reference.solver->solve(b, x, set_iterations, 0, true, history);
      reduction = history[set_iterations] / history[0];
    }
    if (variant_ == variants[0]) {
      Result result = measure(*reference.solver, reduction, set_iterations, reference.seconds);
      result.facts.emplace_back("matrix", "rows with indices");
      return result;
    }
    reference.solver.reset();  // its memory is several times that of what comes
    const Made<hpcg::Diagonals> optimised(geometry);
    auto b = optimised.solver->make_vector();
    auto x = optimised.solver->make_vector();
    fill_right_side(geometry, b.data());
    const int needed = optimised.solver->solve(b, x, most_iterations, reduction * (1 + residual_slack), true, history);
    Result result =
        measure(*optimised.solver, reduction, std::max(needed, set_iterations), reference.seconds + optimised.seconds);
    result.facts.emplace_back("matrix", "27 directions, eight rows at once");
    return result;
  }

 private:
  template <class Matrix>
  Result measure(hpcg::Solver<Matrix>& solver, double reduction, int iterations, double set_up_seconds) const {
    const hpcg::Geometry& geometry = solver.geometry();
    const double of_matrix = hpcg::asymmetry(solver, [&](auto& from, auto& to) { solver.multiply(from, to); });
    const double of_cycle = hpcg::asymmetry(solver, [&](auto& from, auto& to) { solver.precondition(from, to); });
    const hpcg::Exaggerated exaggerated = hpcg::solve_exaggerated(solver);

    auto b = solver.make_vector();
    auto x = solver.make_vector();
    fill_right_side(geometry, b.data());
    const auto length = static_cast<std::size_t>(iterations) + 1;
    std::vector<double> histories(length * static_cast<std::size_t>(sets_));
    std::vector<int> lengths(static_cast<std::size_t>(sets_));

    TimedSection timed(geometry.communicator());
    for (std::size_t set = 0; set < lengths.size(); ++set) {
      std::fill_n(x.data(), x.size(), 0.0);
      lengths[set] = solver.solve(b, x, iterations, 0, true, std::span(histories).subspan(set * length, length));
    }
    const double seconds = timed.end();

    double worst = 0;
    double mean = 0;
    for (std::size_t set = 0; set < lengths.size(); ++set) {
      const double found = reduction_of(histories, set, length);
      worst = std::isnan(found) || found > worst ? found : worst;
      mean += found / sets_;
    }
    double variance = 0;
    for (std::size_t set = 0; set < lengths.size(); ++set)
      variance += std::pow(reduction_of(histories, set, length) - mean, 2) / sets_;

    // Each set counts as 50 iterations, whatever it needed.
    const double operations = hpcg::official_operations(geometry, sets_, iterations) * set_iterations / iterations;
    using hpcg::Exaggerated;
    Result result{
        .seconds = seconds,
        .operations = operations,
        .size = product_text({geometry.all_points(0), geometry.all_points(1), geometry.all_points(2)}),
        .iterations = iterations,
        .checks = {{"iterations of a set", static_cast<double>(std::ranges::min(lengths)),
                    static_cast<double>(iterations)},
                   at_most("symmetry of A", of_matrix, 1),
                   at_most("symmetry of M", of_cycle, 1),
                   at_most("iterations without M", exaggerated.plain, Exaggerated::expected),
                   at_most("iterations with M", exaggerated.preconditioned, Exaggerated::expected_preconditioned),
                   at_most("reduction of the residual", worst, reduction * (1 + residual_slack)),
                   {"variance over the sets", variance, most_variance, 0, true}},
        .fingerprint = fingerprint(histories.data(), histories.size() * sizeof(double))};
    result.values = {{"gflops", operations / (seconds + sets_ * set_up_share * set_up_seconds) * 1e-9},
                     {"set_up_seconds", set_up_seconds},
                     {"residual", worst},
                     {"reference_residual", reduction},
                     {"error", error_of(geometry, x.data())}};
    const hpcg::Triple& ranks = geometry.ranks();
    result.facts.emplace_back("grid of ranks", product_text({ranks[0], ranks[1], ranks[2]}));
    result.facts.emplace_back("variant", variant_);
    return result;
  }

  static double reduction_of(const std::vector<double>& histories, std::size_t set, std::size_t length) {
    return histories[(set + 1) * length - 1] / histories[set * length];
  }

  /// A limit that may be reached.
  static Check at_most(const char* name, double found, double most) {
    return {name, found, std::nextafter(most, std::numeric_limits<double>::infinity()), 0, true};
  }

  /// The largest distance of the solution from 1.
  static double error_of(const hpcg::Geometry& geometry, const double* x) {
    double error = 0;
    for_each_point(geometry.box(), [&](int i, int j, int k) {
      const double found = std::abs(x[geometry.box().at(i, j, k)] - 1);
      error = std::isfinite(found) ? std::max(error, found) : std::numeric_limits<double>::infinity();
    });
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, geometry.communicator());
    return error;
  }

  hpcg::Triple points_{};
  int sets_;
  std::string_view variant_;
};

}  // namespace

int main(int argc, char** argv) {
  const Program program{
      .name = "fabricbench-hpcg",
      .purpose =
          "Solves a sparse system of linear equations by conjugate gradients with a multigrid preconditioner,\n"
          "the problem of HPCG, verifies it as that does and tells how fast it was and where the time went.",
      .kernels = {{"hpcg", "conjugate gradients: layers exchanged with up to 26 neighbours on four grids, tiny sums",
                   read_problem<ConjugateGradients>}},
      .options = {{"--nx", "N", "points of each rank along x, a multiple of 8; default 32"},
                  {"--ny", "N", "along y; default as along x"},
                  {"--nz", "N", "along z; default as along x"},
                  {"--sets", "S", "sets of 50 iterations that are timed; default 3"},
                  {"--variant", "V", "optimised (default), or reference: plain loops over rows with indices"}},
      .example = "--nx 104 --sets 3"};
  return run_program(program, argc, argv);
}
