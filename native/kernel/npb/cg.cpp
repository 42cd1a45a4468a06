// CG, conjugate gradient: an estimate of the smallest eigenvalue of a large sparse matrix.
//
// A is symmetric of order n, with a random pattern of nonzeros; A + shift I is positive definite, and A is far from it.
// Inverse iteration: x = (1, ..., 1); then niter times: solve A z = x approximately, zeta = shift + 1 / (x, z),
// x = z / |z|. Each solution is 25 steps of the conjugate gradient method from z = 0, without preconditioner and
// without a test of convergence; the residual |x - A z| is then computed by one more product. Asked for: the last zeta.
//
// The matrix is spread in two dimensions (cg_grid.hpp). A product takes log2 sqrt p exchanges of n / sqrt p numbers
// between the ranks of a row of the grid and one with the transposed rank; an inner product log2 sqrt p exchanges of
// one number. CG thus asks for low latency, with messages from 8 bytes to some hundred kilobytes one after the other; a
// rank by itself reads the matrix from memory and the vector from all over its cache. Any number of ranks will do.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernel/npb/cg_grid.hpp"
#include "kernel/npb/cg_matrix.hpp"
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

namespace {

constexpr int steps_per_solution = 25;
constexpr double tolerance = 1e-10;

struct Problem {
  CgMatrix matrix;
  int iterations;
  double zeta;
  std::uint64_t nonzeros;  // of the matrix; 0 where it is not known for certain
};

constexpr std::array<Problem, 6> problems{{
    {{1400, 7, 10}, 15, 8.5971775078648, 78148},
    {{7000, 8, 12}, 15, 10.362595087124, 508402},
    {{14000, 11, 20}, 15, 17.130235054029, 1853104},
    {{75000, 13, 60}, 75, 22.712745482631, 0},
    {{150000, 15, 110}, 75, 28.973605592845, 0},
    {{1500000, 21, 500}, 100, 52.514532105794, 0},
}};

std::optional<std::string> refusal(Class letter, int ranks) {
  const auto rows = of_class(problems, letter).matrix.rows;
  if (static_cast<std::size_t>(ranks) <= rows) return std::nullopt;
  return "CG has " + std::to_string(rows) + " columns in class " + std::string(1, static_cast<char>(letter)) +
         ", fewer than " + std::to_string(ranks) + " ranks; take 1 to " + std::to_string(rows);
}

// Sums of products in a fixed order with one sum for each lane of a register or two.
class LaneSum {
 public:
  static constexpr std::size_t lanes = 16;
  template <typename Term>
  static double over(std::size_t size, Term term) {
    double sums[lanes] = {};
    std::size_t n = 0;
    for (; n + lanes <= size; n += lanes) {
      for (std::size_t l = 0; l < lanes; ++l) sums[l] += term(n + l);
    }
    for (std::size_t l = 0; n < size; ++n, ++l) sums[l] += term(n);
    for (std::size_t width = lanes / 2; width > 0; width /= 2) {
      for (std::size_t l = 0; l < width; ++l) sums[l] += sums[l + width];
    }
    return sums[0];
  }
};

// The vectors of the method, each over the grid's columns.
template <typename Column>
class InverseIteration {
 public:
  InverseIteration(MPI_Comm communicator, const Problem& problem)
      : shift_(problem.matrix.shift),
        grid_(communicator, problem.matrix.rows),
        matrix_(problem.matrix, grid_.rows(), grid_.columns()),
        size_(grid_.columns().size()),
        x_(size_),
        z_(size_),
        p_(size_),
        r_(size_),
        shares_(grid_.rows().size()) {
    restart();
  }

  void restart() { std::fill_n(x_.data(), size_, 1.0); }

  /// One iteration: the next zeta.
  double advance() {
    residual_ = solve();
    const double* const z = z_.data();
    double* const x = x_.data();
    double products[2] = {LaneSum::over(size_, [=](std::size_t n) { return x[n] * z[n]; }),
                          LaneSum::over(size_, [=](std::size_t n) { return z[n] * z[n]; })};
    grid_.sum(products, 2);
    const double scale = 1 / std::sqrt(products[1]);
    for (std::size_t n = 0; n < size_; ++n) x[n] = scale * z[n];
    return shift_ + 1 / products[0];
  }

  /// |x - A z| of the last iteration.
  double residual() const { return residual_; }
  std::uint64_t own_nonzeros() const { return matrix_.entries(); }

 private:
  const double* multiply(const double* vector) {
    matrix_.multiply(vector, shares_.data());
    return grid_.gather(shares_.data());
  }

  double sum_over_row(double value) const {
    grid_.sum(&value, 1);
    return value;
  }

  // Makes z; the residual.
  double solve() {
    const double* const x = x_.data();
    double* const z = z_.data();
    double* const r = r_.data();
    double* const p = p_.data();
    std::fill_n(z, size_, 0.0);
    std::copy_n(x, size_, r);
    std::copy_n(x, size_, p);
    double rho = sum_over_row(LaneSum::over(size_, [=](std::size_t n) { return x[n] * x[n]; }));
    for (int step = 0; step < steps_per_solution; ++step) {
      const double* const q = multiply(p);
      const double alpha = rho / sum_over_row(LaneSum::over(size_, [=](std::size_t n) { return p[n] * q[n]; }));
      const double rho_before = rho;
      rho = sum_over_row(LaneSum::over(size_, [=](std::size_t n) {
        r[n] -= alpha * q[n];
        return r[n] * r[n];
      }));
      const double beta = rho / rho_before;
      // z is behind by this step's alpha p until here, so that p is read once for both.
      for (std::size_t n = 0; n < size_; ++n) {
        z[n] += alpha * p[n];
        p[n] = r[n] + beta * p[n];
      }
    }
    const double* const product = multiply(z);
    return std::sqrt(sum_over_row(LaneSum::over(size_, [=](std::size_t n) {
      const double difference = x[n] - product[n];
      return difference * difference;
    })));
  }

  double shift_;
  CgGrid grid_;
  SparseBlock<Column> matrix_;
  std::size_t size_;
  Buffer<double> x_, z_, p_, r_;
  Buffer<double> shares_;  // of a product, over the grid's rows
  double residual_ = 0;
};

std::vector<Check> compare(MPI_Comm communicator, const Problem& problem, double zeta, std::uint64_t own_nonzeros) {
  std::vector<Check> checks{{"zeta", zeta, problem.zeta, tolerance}};
  std::uint64_t nonzeros = 0;
  MPI_Allreduce(&own_nonzeros, &nonzeros, 1, MPI_UINT64_T, MPI_SUM, communicator);
  if (problem.nonzeros != 0) {
    checks.push_back({"nonzeros", static_cast<double>(nonzeros), static_cast<double>(problem.nonzeros), 0});
  }
  return checks;
}

double operations_of(const Problem& problem) {
  const auto n = static_cast<double>(problem.matrix.rows);
  const auto entries = static_cast<double>(problem.matrix.vector_entries);
  const double per_row = entries * (entries + 1);
  return 2.0 * problem.iterations * n * (3 + per_row + steps_per_solution * (5 + per_row) + 3);
}

template <typename Column>
Result run_with(MPI_Comm communicator, const Problem& problem) {
  InverseIteration<Column> iteration(communicator, problem);
  iteration.advance();  // untimed
  iteration.restart();

  double zeta = 0;
  TimedSection timed(communicator);
  for (int i = 0; i < problem.iterations; ++i) zeta = iteration.advance();
  const double seconds = timed.end();

  // The rows of the grid compute the same numbers; only rank 0's are told, so that all ranks say the same in any case.
  double outcome[2] = {zeta, iteration.residual()};
  MPI_Bcast(outcome, 2, MPI_DOUBLE, 0, communicator);
  return {.seconds = seconds,
          .operations = operations_of(problem),
          .size = std::to_string(problem.matrix.rows),
          .iterations = problem.iterations,
          .checks = compare(communicator, problem, outcome[0], iteration.own_nonzeros()),
          .fingerprint = fingerprint(outcome, sizeof outcome)};
}

// Which kind of column index is a rank's own affair: only values travel.
Result run(MPI_Comm communicator, Class letter) {
  const auto& problem = of_class(problems, letter);
  const CgGrid grid(communicator, problem.matrix.rows);
  const bool is_short = grid.columns().size() <= std::numeric_limits<std::uint16_t>::max();
  return is_short ? run_with<std::uint16_t>(communicator, problem) : run_with<std::uint32_t>(communicator, problem);
}

}  // namespace

const Kernel cg{.name = "cg",
                .summary = "Sparse matrix times vector with short messages in sequence: latency, and memory bandwidth",
                .refusal = refusal,
                .run = run};

}  // namespace fabricbench::npb
