// Conjugate gradients with a multigrid preconditioner of four levels, over any way to keep the matrix (`Matrix`:
// rows.hpp is the reference, diagonals.hpp the optimised one).
//
// A cycle of the multigrid: one symmetric sweep of Gauss-Seidel from zero, the residual at every other point in each
// dimension is solved for on the coarser grid in the same way, its solution is added at these points, one more sweep.
// The coarsest grid has one sweep alone. A sweep takes its neighbours' points as they were before it. An iteration has
// one cycle, one product with the matrix and three dot products: 11 exchanges with all neighbours and 3 sums over all
// ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernel/hpcg/halo.hpp"
#include "kernel/hpcg/problem.hpp"

namespace fabricbench::hpcg {

inline constexpr int levels = 4;

/// Floating-point operations of so many sets of so many iterations as the official program counts them, whatever a
/// matrix leaves out or does besides.
double official_operations(const Geometry& finest, int sets, int iterations);

template <class Matrix>
class Solver {
 public:
  using Vector = kernel::Buffer<double>;

  /// Throws std::bad_alloc.
  explicit Solver(const Geometry& finest) {
    Geometry geometry = finest;
    for (int level = 0; level < levels; ++level) {
      levels_.push_back(std::make_unique<Level>(geometry, level > 0));
      geometry = geometry.coarser();
    }
    for (Vector* vector : {&direction_, &residual_, &preconditioned_, &product_}) *vector = make_vector();
  }

  Vector make_vector() const { return Vector(box().size()); }
  const Geometry& geometry() const { return levels_.front()->geometry; }
  const Box& box() const { return geometry().box(); }
  Matrix& matrix() { return levels_.front()->matrix; }

  /// Solve A x = b from the x that is given: so many iterations, fewer where |r| / |r0| comes down to `reduction`. The
  /// layer around b need not be up to date. `history` has room for |r| of the start and after each iteration. Allocates
  /// nothing. Collective, as all below. Returns the iterations.
  int solve(const Vector& b, Vector& x, int most_iterations, double reduction, bool is_preconditioned,
            std::span<double> history) {
    multiply(x, product_);
    combine(b, -1, product_, residual_);
    history[0] = std::sqrt(dot(residual_, residual_));
    double old = 0;
    int done = 0;
    while (done < most_iterations && history[static_cast<std::size_t>(done)] > reduction * history[0]) {
      if (is_preconditioned) precondition(residual_, preconditioned_);
      Vector& towards = is_preconditioned ? preconditioned_ : residual_;
      const double current = dot(residual_, towards);
      if (done == 0) {
        combine(towards, 0, towards, direction_);
      } else {
        combine(towards, current / old, direction_, direction_);
      }
      old = current;
      multiply(direction_, product_);
      const double step = current / dot(direction_, product_);
      combine(x, step, direction_, x);
      combine(residual_, -step, product_, residual_);
      ++done;
      history[static_cast<std::size_t>(done)] = std::sqrt(dot(residual_, residual_));
    }
    return done;
  }

  /// y = A x.
  void multiply(Vector& x, Vector& y) {
    Level& level = *levels_.front();
    level.halo.exchange(x.data());
    level.matrix.multiply(x.data(), y.data());
  }

  /// x = M r, a cycle of the multigrid.
  void precondition(const Vector& r, Vector& x) { cycle(0, r.data(), x); }

  double dot(const Vector& a, const Vector& b) {
    double sum = levels_.front()->matrix.dot(a.data(), b.data());
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, geometry().communicator());
    return sum;
  }

 private:
  struct Level {
    Level(const Geometry& of, bool is_coarse) : geometry(of), matrix(of), halo(of) {
      if (!is_coarse) return;
      right = Vector(of.box().size());
      solution = Vector(of.box().size());
    }
    Geometry geometry;
    Matrix matrix;
    Halo halo;
    Vector right;
    Vector solution;
  };

  void cycle(std::size_t number, const double* r, Vector& x) {
    Level& level = *levels_[number];
    std::fill_n(x.data(), x.size(), 0.0);
    level.halo.exchange(x.data());
    level.matrix.smooth_zero(r, x.data());
    if (number + 1 == levels_.size()) return;
    Level& coarse = *levels_[number + 1];
    level.halo.exchange(x.data());
    level.matrix.restrict_residual(r, x.data(), coarse.geometry.box(), coarse.right.data());
    cycle(number + 1, coarse.right.data(), coarse.solution);
    add_solution(level.geometry.box(), coarse.geometry.box(), coarse.solution.data(), x.data());
    level.halo.exchange(x.data());
    level.matrix.smooth(r, x.data());
  }

  static void add_solution(const Box& fine, const Box& coarse, const double* from, double* to) {
    for_each_point(coarse, [&](int i, int j, int k) { to[fine.at(2 * i, 2 * j, 2 * k)] += from[coarse.at(i, j, k)]; });
  }

  /// out = a + factor b; `out` may be either.
  void combine(const Vector& a, double factor, const Vector& b, Vector& out) const {
    const Box& own = box();
    for (int k = 0; k < own.points[2]; ++k) {
      for (int j = 0; j < own.points[1]; ++j) {
        const std::ptrdiff_t line = own.at(0, j, k);
        const double* const first = a.data() + line;
        const double* const second = b.data() + line;
        double* const to = out.data() + line;
        for (int i = 0; i < own.points[0]; ++i) to[i] = first[i] + factor * second[i];
      }
    }
  }

  std::vector<std::unique_ptr<Level>> levels_;
  Vector direction_;
  Vector residual_;
  Vector preconditioned_;
  Vector product_;
};

/// b of the specification, for the solution 1.
inline void fill_right_side(const Geometry& geometry, double* b) {
  for_each_point(geometry.box(),
                 [&](int i, int j, int k) { b[geometry.box().at(i, j, k)] = right_side(geometry.entries(i, j, k)); });
}

/// The same on any number of ranks, from 1 to 2.
double random_number(std::int64_t row, std::uint64_t seed);

/// How far from symmetric something is, |x' (C y) - y' (C x)| over 2 |x|^2 |A| |y|^2 eps with |A| = 52: the official
/// measure, which is to be at most 1. `apply(from, to)` is C.
template <class Matrix, class Apply>
double asymmetry(Solver<Matrix>& solver, Apply&& apply) {
  auto x = solver.make_vector();
  auto y = solver.make_vector();
  auto image = solver.make_vector();
  const Geometry& geometry = solver.geometry();
  for_each_point(geometry.box(), [&](int i, int j, int k) {
    const auto at = static_cast<std::size_t>(geometry.box().at(i, j, k));
    x[at] = random_number(geometry.row(i, j, k), 1);
    y[at] = random_number(geometry.row(i, j, k), 2);
  });
  constexpr double norm = 2 * diagonal;
  constexpr double epsilon = std::numeric_limits<double>::epsilon();
  const double sizes = solver.dot(x, x) * norm * solver.dot(y, y);
  apply(y, image);
  const double forth = solver.dot(x, image);
  apply(x, image);
  const double back = solver.dot(y, image);
  return std::abs(forth - back) / (2 * sizes * epsilon);
}

/// Iterations that it takes where the diagonal is made so large that the matrix has few different eigenvalues. The
/// worst of two runs; `most` where it did not come to its end.
struct Exaggerated {
  static constexpr int most = 50;
  static constexpr double reduction = 1e-12;
  static constexpr int expected = 12;
  static constexpr int expected_preconditioned = 2;
  int plain = 0;
  int preconditioned = 0;
};

/// The finest matrix is as it was afterwards.
template <class Matrix>
Exaggerated solve_exaggerated(Solver<Matrix>& solver) {
  const Geometry& geometry = solver.geometry();
  const auto scale = [&](int i, int j, int k) {
    constexpr std::int64_t different_rows = 9;
    constexpr double large = 1e6;
    const std::int64_t row = geometry.row(i, j, k);
    return large * (row < different_rows ? static_cast<double>(row + 2) : 1.0);
  };
  auto b = solver.make_vector();
  auto x = solver.make_vector();
  fill_right_side(geometry, b.data());
  for_each_point(geometry.box(), [&](int i, int j, int k) {
    b[static_cast<std::size_t>(geometry.box().at(i, j, k))] *= scale(i, j, k);
  });
  solver.matrix().set_diagonal([&](int i, int j, int k) { return diagonal * scale(i, j, k); });
  Exaggerated found;
  std::vector<double> history(Exaggerated::most + 1);
  for (const bool is_preconditioned : {false, true}) {
    int& worst = is_preconditioned ? found.preconditioned : found.plain;
    for (int run = 0; run < 2; ++run) {
      std::fill_n(x.data(), x.size(), 0.0);
      worst =
          std::max(worst, solver.solve(b, x, Exaggerated::most, Exaggerated::reduction, is_preconditioned, history));
    }
  }
  solver.matrix().set_diagonal([](int, int, int) { return diagonal; });
  return found;
}

}  // namespace fabricbench::hpcg
