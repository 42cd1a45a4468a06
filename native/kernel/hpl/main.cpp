// fabricbench-hpl: a dense system of linear equations, the problem of High-Performance Linpack (HPL), by Gaussian
// elimination with row exchanges over a grid of P x Q ranks.
//
// The matrix lies block-cyclically over the grid (layout.hpp). For each panel of NB columns the ranks that have it
// factor it together, which asks for the latency of small reductions (panel.hpp); it is sent along the rows of the grid
// in large messages, which look-ahead hides behind computing (broadcast.hpp); the rows that its pivots name are
// exchanged along the columns of the grid, of all columns to the right (row_exchange.hpp); and its product is taken off
// what is left, which is nearly all of the arithmetic and the BLAS's (solver.hpp).
//
// Verified as HPL is: |A x - b| / (eps (|A| |x| + |b|) n) < 16 in the largest norm, with the system made anew. Counted
// are 2/3 n^3 + 3/2 n^2 operations, over the time of factorisation and solution.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/rank_info.hpp"
#include "kernel/frame/kernel.hpp"
#include "kernel/hpl/solver.hpp"

namespace {

using namespace fabricbench;
using namespace fabricbench::kernel;

constexpr std::int64_t most_equations = 4'000'000;
constexpr std::int64_t usual_equations = 2000;
constexpr double of_mib = 1024.0 * 1024.0;

/// The most square grid with no more rows than columns.
std::pair<int, int> square_grid(int ranks) {
  int rows = static_cast<int>(std::sqrt(ranks));
  while (ranks % rows != 0) --rows;
  return {rows, ranks / rows};
}

/// The clock of this rank's processor in Hz: what it is built for where the kernel tells, else what it says it is; 0
/// where neither is known.
double processor_hz() {
  double khz = 0;
  if (std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency") >> khz && khz > 0) return khz * 1e3;
  std::ifstream about("/proc/cpuinfo");
  for (std::string line; std::getline(about, line);) {
    if (line.starts_with("cpu MHz")) return std::stod(line.substr(line.find(':') + 1)) * 1e6;
  }
  return 0;
}

/// Each different text of the ranks once, on rank 0.
std::string texts_of(const std::string& own, MPI_Comm communicator) {
  constexpr std::size_t most = 256;
  int ranks = 1;
  MPI_Comm_size(communicator, &ranks);
  std::array<char, most> text{};
  own.copy(text.data(), most - 1);
  std::vector<char> all(most * static_cast<std::size_t>(ranks));
  MPI_Gather(text.data(), most, MPI_CHAR, all.data(), most, MPI_CHAR, 0, communicator);
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin < all.size(); begin += most) {
    const std::string one(&all[begin]);
    if (std::ranges::find(found, one) == found.end()) found.push_back(one);
  }
  std::string together;
  for (const std::string& one : found) together.append(together.empty() ? "" : "; ").append(one);
  return together;
}

class Linpack final : public Problem {
 public:
  explicit Linpack(const Arguments& arguments)
      : block_(arguments.number("--nb", 1, 4096, 192)),
        p_(static_cast<int>(arguments.number("--p", 1, 100'000, 1))),
        q_(static_cast<int>(arguments.number("--q", 1, 100'000, 1))),
        method_{.depth = static_cast<int>(arguments.number("--depth", 0, 1, 1)),
                .broadcast = hpl::BroadcastKind{place_of(arguments, "--broadcast", hpl::broadcast_names, 1)},
                .swap = hpl::SwapKind{place_of(arguments, "--swap", hpl::swap_names, 0)}},
        threads_(static_cast<int>(arguments.number("--threads", 1, 4096, 1))),
        blas_(arguments.text("--blas", "")) {
    if (arguments.has("--n") && arguments.has("--memory"))
      throw UsageError{"--n and --memory both say how many equations there are; give one of them"};
    n_ = arguments.number("--n", 1, most_equations, usual_equations);
    if (!arguments.has("--memory")) return;
    // [A|b] alone: what else there is is a few panels.
    const auto mib = static_cast<double>(arguments.number("--memory", 1, 1'000'000'000, 1));
    const auto most = static_cast<std::int64_t>(std::sqrt(mib * of_mib * p_ * q_ / sizeof(double)));
    n_ = std::clamp<std::int64_t>(most / block_ * block_, std::min(most, block_), most_equations);
  }

  std::vector<Parameter> parameters() const override {
    return {{"n", n_},
            {"nb", block_},
            {"p", std::int64_t{p_}},
            {"q", std::int64_t{q_}},
            {"depth", std::int64_t{method_.depth}},
            {"broadcast", std::string(hpl::broadcast_names[static_cast<std::size_t>(method_.broadcast)])},
            {"swap", std::string(hpl::swap_names[static_cast<std::size_t>(method_.swap)])},
            {"threads", std::int64_t{threads_}}};
  }

  std::optional<std::string> refusal(int ranks) const override {
    // What is sent at once is a panel, or as many rows, of all that a rank has: MPI counts its numbers in an int.
    const std::int64_t blocks = (n_ + block_) / block_ + 1;  // and b
    const std::int64_t most = ((blocks + std::min(p_, q_) - 1) / std::min(p_, q_) + 2) * block_;
    if (most * block_ > std::numeric_limits<int>::max())
      return "panels of " + std::to_string(block_) + " columns of " + std::to_string(n_) + " equations on " +
             std::to_string(p_) + " x " + std::to_string(q_) +
             " ranks are more numbers than MPI sends at once: take a smaller --nb, or more ranks";
    if (std::int64_t{p_} * q_ == ranks) return std::nullopt;
    const auto [rows, columns] = square_grid(ranks);
    return "a grid of " + std::to_string(p_) + " x " + std::to_string(q_) + " needs " +
           std::to_string(std::int64_t{p_} * q_) + " ranks, found " + std::to_string(ranks) + ": give --p " +
           std::to_string(rows) + " --q " + std::to_string(columns) + ", or --ranks " +
           std::to_string(std::int64_t{p_} * q_) + " where there are more";
  }

  Result run(MPI_Comm communicator) const override {
    const hpl::Blas blas = hpl::Blas::load(blas_, threads_);
    const hpl::Grid grid(communicator, p_, q_);
    hpl::Matrix matrix(grid, n_, block_);
    hpl::Solver solver(grid, blas, matrix, method_);
    matrix.fill();

    TimedSection timed(communicator);
    solver.solve();
    const double seconds = timed.end();

    const double n = static_cast<double>(n_);
    const double operations = (2.0 / 3.0 * n + 3.0 / 2.0) * n * n;
    const hpl::Residual residual = residual_of(grid, matrix, solver.own_solution());
    Result result{.seconds = seconds,
                  .operations = operations,
                  .size = std::to_string(n_),
                  .iterations = 1,
                  .checks = {{"scaled residual", residual.scaled, hpl::Residual::limit, 0, true}},
                  .fingerprint = fingerprint_of(grid, solver.own_solution())};
    result.values.emplace_back("gflops", operations / seconds * 1e-9);
    add_per_hertz(result, communicator);
    result.facts.emplace_back("BLAS", texts_of(blas.name(), communicator));
    return result;
  }

 private:
  static int place_of(const Arguments& arguments, std::string_view option, std::span<const std::string_view> words,
                      std::size_t usual) {
    return static_cast<int>(std::ranges::find(words, arguments.word(option, words, words[usual])) - words.begin());
  }

  /// Operations that a processor did in a cycle of its clock, over all ranks and their threads. Not told where a rank
  /// does not know its clock, or where there are fewer processors than threads: whose cycles they were nobody knows.
  void add_per_hertz(Result& result, MPI_Comm communicator) const {
    const double own = processor_hz();
    double least = own;
    double sum = own;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MIN, communicator);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, communicator);
    if (least <= 0) return;
    result.values.emplace_back("processor_hz", sum / p_ / q_);
    auto have_own = static_cast<int>(has_own_processors(communicator, threads_));
    MPI_Allreduce(MPI_IN_PLACE, &have_own, 1, MPI_INT, MPI_LAND, communicator);
    if (have_own == 0) return;
    result.values.emplace_back("flops_per_hz", result.operations / result.seconds / (sum * threads_));
  }

  static std::uint64_t fingerprint_of(const hpl::Grid& grid, const std::vector<double>& solution) {
    std::uint64_t hash = grid.own_row() == 0 ? fingerprint(solution.data(), solution.size() * sizeof(double)) : 0;
    MPI_Allreduce(MPI_IN_PLACE, &hash, 1, MPI_UINT64_T, MPI_BXOR, grid.all());
    return hash;
  }

  std::int64_t n_ = 0;
  std::int64_t block_;
  int p_;
  int q_;
  hpl::Method method_;
  int threads_;
  std::string blas_;
};

}  // namespace

int main(int argc, char** argv) {
  const Program program{
      .name = "fabricbench-hpl",
      .purpose =
          "Solves a dense system of linear equations by High-Performance Linpack's method, verifies the\n"
          "solution and tells how fast it was and where the time went.",
      .kernels = {{"hpl", "LU factorisation: large messages along rows, row exchanges along columns, tiny reductions",
                   read_problem<Linpack>}},
      .options = {{"--n", "N", "equations; default 2000"},
                  {"--memory", "MIB", "as many as take so many MiB on each rank, a multiple of NB; in place of --n"},
                  {"--nb", "NB", "columns of a panel; default 192"},
                  {"--p", "P", "rows of the grid of ranks; default 1"},
                  {"--q", "Q", "columns of it; default 1"},
                  {"--depth", "D",
                   "look-ahead: 1 (default) factors a panel while the one before is applied, 0 does not"},
                  {"--broadcast", "B",
                   "of panels: ring-modified (default), ring, long (in parts, around a ring), mpi (MPI_Ibcast)"},
                  {"--swap", "S", "of rows: binary (default: few messages), long (around a ring)"},
                  {"--threads", "T", "of the BLAS, on each rank; default 1"},
                  {"--blas", "FILE",
                   "its library; default $FABRICBENCH_BLAS, else scipy-openblas32's, else one of the system"}},
      .example = "--n 8000 --p 2 --q 2 --output hpl.jsonl"};
  return run_program(program, argc, argv);
}
