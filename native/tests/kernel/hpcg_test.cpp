// HPCG without its program, on however many ranks run this: each part beside the specification written out over the
// whole grid, which every rank here can hold.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <vector>

#include "kernel/frame/level.hpp"
#include "kernel/hpcg/diagonals.hpp"
#include "kernel/hpcg/rows.hpp"
#include "kernel/hpcg/solver.hpp"

namespace fabricbench::kernel {
constinit const std::string_view compiled_level = "native";  // a program of one level: it never becomes another
constinit const bool has_one_level = false;
}  // namespace fabricbench::kernel

namespace fabricbench::hpcg {
namespace {

using Vector = kernel::Buffer<double>;
using Whole = std::vector<double>;  // of all ranks, by row

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Boxes of odd sides too: lines shorter than eight, a whole number of eights, and one more.
constexpr Triple boxes[] = {{1, 1, 1}, {2, 3, 4}, {8, 2, 2}, {9, 3, 2}, {17, 1, 3}, {3, 8, 5}};

std::size_t at(const Geometry& geometry, int i, int j, int k) {
  return static_cast<std::size_t>(geometry.box().at(i, j, k));
}

/// Numbers for this rank's points; elsewhere what an exchange has to replace, if it is a point at all.
Vector own_part(const Geometry& geometry, const Whole& whole, double elsewhere = 0) {
  Vector part(geometry.box().size());
  const Triple& points = geometry.box().points;
  for (int k = -1; k <= points[2]; ++k) {
    for (int j = -1; j <= points[1]; ++j) {
      for (int i = -1; i <= points[0]; ++i) part[at(geometry, i, j, k)] = geometry.has(i, j, k) ? elsewhere : 0;
    }
  }
  for_each_point(geometry.box(), [&](int i, int j, int k) {
    part[at(geometry, i, j, k)] = whole[static_cast<std::size_t>(geometry.row(i, j, k))];
  });
  return part;
}

Whole random_whole(const Geometry& geometry, std::uint64_t seed) {
  Whole whole(static_cast<std::size_t>(geometry.all_points()));
  for (std::size_t row = 0; row < whole.size(); ++row)
    whole[row] = random_number(static_cast<std::int64_t>(row), seed) - 1.5;
  return whole;
}

/// An entry of the matrix by its definition, from the numbers of two rows.
double entry(const Geometry& geometry, std::int64_t row, std::int64_t column) {
  if (row == column) return 26;
  for (const std::size_t dimension : {0U, 1U, 2U}) {
    const std::int64_t points = geometry.all_points(dimension);
    if (std::abs(row % points - column % points) > 1) return 0;
    row /= points;
    column /= points;
  }
  return -1;
}

double product(const Geometry& geometry, std::int64_t row, const Whole& x) {
  double sum = 0;
  for (std::size_t column = 0; column < x.size(); ++column)
    sum += entry(geometry, row, static_cast<std::int64_t>(column)) * x[column];
  return sum;
}

/// Forward and backward over this rank's rows; what other ranks have stays.
Whole smoothed(const Geometry& geometry, const Whole& r, Whole x) {
  std::vector<std::int64_t> rows;
  for_each_point(geometry.box(), [&](int i, int j, int k) { rows.push_back(geometry.row(i, j, k)); });
  const auto relax = [&](std::int64_t row) {
    const auto own = static_cast<std::size_t>(row);
    x[own] += (r[own] - product(geometry, row, x)) / 26;
  };
  for (auto row = rows.begin(); row != rows.end(); ++row) relax(*row);
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) relax(*row);
  return x;
}

void expect_near(const Geometry& geometry, const Vector& found, const Whole& expected) {
  for_each_point(geometry.box(), [&](int i, int j, int k) {
    EXPECT_NEAR(found[at(geometry, i, j, k)], expected[static_cast<std::size_t>(geometry.row(i, j, k))], 1e-12)
        << i << ' ' << j << ' ' << k;
  });
}

TEST(HpcgGeometry, HasTheLeastSurfaceOfAllGridsOfRanks) {
  for (int ranks = 1; ranks <= 100; ++ranks) {
    const auto surface = [](const Triple& grid) { return grid[0] * grid[1] + grid[1] * grid[2] + grid[0] * grid[2]; };
    const Triple found = ranks_grid(ranks);
    EXPECT_EQ(found[0] * found[1] * found[2], ranks);
    for (int x = 1; x <= ranks; ++x) {
      for (int y = 1; y <= ranks / x; ++y) {
        if (ranks % (x * y) == 0) {
          EXPECT_LE(surface(found), surface({x, y, ranks / x / y}));
        }
      }
    }
  }
  EXPECT_EQ(ranks_grid(2), (Triple{2, 1, 1}));
  EXPECT_EQ(ranks_grid(12), (Triple{3, 2, 2}));
}

TEST(HpcgGeometry, GivesEachRowToOneRank) {
  for (const Triple& points : boxes) {
    const Geometry geometry(MPI_COMM_WORLD, points);
    std::vector<int> owners(static_cast<std::size_t>(geometry.all_points()));
    std::int64_t entries = 0;
    for_each_point(geometry.box(), [&](int i, int j, int k) {
      owners[static_cast<std::size_t>(geometry.row(i, j, k))] += 1;
      entries += geometry.entries(i, j, k);
    });
    MPI_Allreduce(MPI_IN_PLACE, owners.data(), static_cast<int>(owners.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &entries, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(std::set(owners.begin(), owners.end()), std::set{1});
    EXPECT_EQ(entries, geometry.nonzeros());
  }
}

TEST(HpcgHalo, BringsFacesEdgesAndCornersAndNothingElse) {
  for (const Triple& points : boxes) {
    const Geometry geometry(MPI_COMM_WORLD, points);
    Whole numbers(static_cast<std::size_t>(geometry.all_points()));
    for (std::size_t row = 0; row < numbers.size(); ++row) numbers[row] = static_cast<double>(row + 1);
    Vector x = own_part(geometry, numbers, nan);
    Halo halo(geometry);
    for (int again = 0; again < 2; ++again) halo.exchange(x.data());
    for (int k = -1; k <= points[2]; ++k) {
      for (int j = -1; j <= points[1]; ++j) {
        for (int i = -1; i <= points[0]; ++i) {
          const double expected = geometry.has(i, j, k) ? static_cast<double>(geometry.row(i, j, k) + 1) : 0;
          EXPECT_EQ(x[at(geometry, i, j, k)], expected) << i << ' ' << j << ' ' << k;
        }
      }
    }
  }
}

template <class Matrix>
class HpcgMatrix : public testing::Test {};
using Matrices = testing::Types<Rows, Diagonals>;
TYPED_TEST_SUITE(HpcgMatrix, Matrices);

TYPED_TEST(HpcgMatrix, MultipliesAsTheDenseMatrixDoes) {
  for (const Triple& points : boxes) {
    const Geometry geometry(MPI_COMM_WORLD, points);
    const TypeParam matrix(geometry);
    const Whole x = random_whole(geometry, 3);
    Vector part = own_part(geometry, x, nan);
    Halo(geometry).exchange(part.data());
    Vector found(geometry.box().size());
    matrix.multiply(part.data(), found.data());
    Whole expected(x.size());
    for (std::size_t row = 0; row < x.size(); ++row)
      expected[row] = product(geometry, static_cast<std::int64_t>(row), x);
    expect_near(geometry, found, expected);
  }
}

TYPED_TEST(HpcgMatrix, SmoothsInTheOrderOfRows) {
  for (const Triple& points : boxes) {
    const Geometry geometry(MPI_COMM_WORLD, points);
    const TypeParam matrix(geometry);
    Halo halo(geometry);
    const Whole r = random_whole(geometry, 4);
    const Vector right = own_part(geometry, r);
    for (const bool is_from_zero : {true, false}) {
      const Whole x = is_from_zero ? Whole(r.size()) : random_whole(geometry, 5);
      Vector part = own_part(geometry, x, nan);
      halo.exchange(part.data());
      if (is_from_zero) {
        matrix.smooth_zero(right.data(), part.data());
      } else {
        matrix.smooth(right.data(), part.data());
      }
      expect_near(geometry, part, smoothed(geometry, r, x));
    }
  }
}

TYPED_TEST(HpcgMatrix, GivesTheResidualAtEveryOtherPoint) {
  for (const Triple& points : {Triple{2, 2, 2}, Triple{8, 4, 2}, Triple{18, 2, 6}}) {
    const Geometry geometry(MPI_COMM_WORLD, points);
    const Geometry coarse = geometry.coarser();
    TypeParam matrix(geometry);
    const Whole x = random_whole(geometry, 6);
    const Whole r = random_whole(geometry, 7);
    Vector part = own_part(geometry, x, nan);
    Halo(geometry).exchange(part.data());
    Vector found(coarse.box().size());
    matrix.restrict_residual(own_part(geometry, r).data(), part.data(), coarse.box(), found.data());
    for_each_point(coarse.box(), [&](int i, int j, int k) {
      const std::int64_t row = geometry.row(2 * i, 2 * j, 2 * k);
      EXPECT_NEAR(found[at(coarse, i, j, k)], r[static_cast<std::size_t>(row)] - product(geometry, row, x), 1e-12);
    });
  }
}

TYPED_TEST(HpcgMatrix, TakesAnotherDiagonal) {
  const Geometry geometry(MPI_COMM_WORLD, {9, 2, 2});
  TypeParam matrix(geometry);
  matrix.set_diagonal([](int i, int j, int k) { return 100 + i + 10.0 * j + k; });
  const Whole x = random_whole(geometry, 8);
  Vector part = own_part(geometry, x, nan);
  Halo(geometry).exchange(part.data());
  Vector found(geometry.box().size());
  matrix.multiply(part.data(), found.data());
  for_each_point(geometry.box(), [&](int i, int j, int k) {
    const std::int64_t row = geometry.row(i, j, k);
    const double more = (100 + i + 10.0 * j + k - 26) * x[static_cast<std::size_t>(row)];
    EXPECT_NEAR(found[at(geometry, i, j, k)], product(geometry, row, x) + more, 1e-11);
  });
}

TYPED_TEST(HpcgMatrix, AddsUpWhatIsOwnAndNoCopies) {
  for (const Triple& points : boxes) {
    const Geometry geometry(MPI_COMM_WORLD, points);
    const TypeParam matrix(geometry);
    const Whole a = random_whole(geometry, 9);
    const Whole b = random_whole(geometry, 10);
    double found = matrix.dot(own_part(geometry, a, nan).data(), own_part(geometry, b, nan).data());
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double expected = 0;
    for (std::size_t row = 0; row < a.size(); ++row) expected += a[row] * b[row];
    EXPECT_NEAR(found, expected, 1e-12);
  }
}

TYPED_TEST(HpcgMatrix, ConvergesToOnesOnAnyBox) {
  for (const Triple& points : {Triple{8, 8, 8}, Triple{16, 8, 8}}) {
    Solver<TypeParam> solver(Geometry(MPI_COMM_WORLD, points));
    auto b = solver.make_vector();
    auto x = solver.make_vector();
    fill_right_side(solver.geometry(), b.data());
    std::vector<double> history(51);
    const int done = solver.solve(b, x, 50, 1e-12, true, history);
    EXPECT_LT(done, 30);
    EXPECT_LE(history[static_cast<std::size_t>(done)], 1e-12 * history[0]);
    for_each_point(solver.box(),
                   [&](int i, int j, int k) { EXPECT_NEAR(x[at(solver.geometry(), i, j, k)], 1, 1e-11); });
  }
}

TYPED_TEST(HpcgMatrix, IsSymmetricAndSoIsItsPreconditioner) {
  Solver<TypeParam> solver(Geometry(MPI_COMM_WORLD, {8, 16, 8}));
  EXPECT_LE(asymmetry(solver, [&](auto& from, auto& to) { solver.multiply(from, to); }), 1);
  EXPECT_LE(asymmetry(solver, [&](auto& from, auto& to) { solver.precondition(from, to); }), 1);
}

TYPED_TEST(HpcgMatrix, ThatIsNotSymmetricIsFound) {
  Solver<TypeParam> solver(Geometry(MPI_COMM_WORLD, {8, 8, 8}));
  const double found = asymmetry(solver, [&](auto& from, auto& to) {
    solver.multiply(from, to);
    for (std::size_t place = to.size() - 1; place > 0; --place) to[place] += 1e-3 * from[place - 1];
  });
  EXPECT_GT(found, 1);
}

TYPED_TEST(HpcgMatrix, TakesFewIterationsWithAnExaggeratedDiagonalAndHasItsOwnBack) {
  Solver<TypeParam> solver(Geometry(MPI_COMM_WORLD, {8, 8, 16}));
  const Exaggerated found = solve_exaggerated(solver);
  EXPECT_LE(found.plain, Exaggerated::expected);
  EXPECT_GT(found.plain, Exaggerated::expected_preconditioned);
  EXPECT_LE(found.preconditioned, Exaggerated::expected_preconditioned);
  EXPECT_GT(found.preconditioned, 0);
  const Geometry& geometry = solver.geometry();
  const Whole x = random_whole(geometry, 11);
  Vector part = own_part(geometry, x, nan);
  Vector image(geometry.box().size());
  solver.multiply(part, image);
  const std::int64_t row = geometry.row(0, 0, 0);
  EXPECT_NEAR(image[at(geometry, 0, 0, 0)], product(geometry, row, x), 1e-12);
}

TEST(HpcgSolver, BothVariantsHaveTheSameHistory) {
  for (const Triple& points : {Triple{8, 8, 8}, Triple{24, 8, 16}}) {
    std::vector<double> histories[2];
    const auto run = [&]<class Matrix>(std::vector<double>& history) {
      Solver<Matrix> solver(Geometry(MPI_COMM_WORLD, points));
      auto b = solver.make_vector();
      auto x = solver.make_vector();
      fill_right_side(solver.geometry(), b.data());
      history.resize(9);
      EXPECT_EQ(solver.solve(b, x, 8, 0, true, history), 8);
    };
    run.operator()<Rows>(histories[0]);
    run.operator()<Diagonals>(histories[1]);
    for (std::size_t i = 0; i < histories[0].size(); ++i)
      EXPECT_NEAR(histories[1][i] / histories[0][i], 1, 1e-9) << "iteration " << i;
  }
}

TEST(HpcgSolver, ANumberThatIsNoneComesToTheEndAndIsNoSmallResidual) {
  Solver<Diagonals> solver(Geometry(MPI_COMM_WORLD, {8, 8, 8}));
  auto b = solver.make_vector();
  auto x = solver.make_vector();
  fill_right_side(solver.geometry(), b.data());
  b[at(solver.geometry(), 0, 0, 0)] = nan;
  std::vector<double> history(51, 0.0);
  const int done = solver.solve(b, x, 50, 1e-12, true, history);
  EXPECT_FALSE(history[static_cast<std::size_t>(done)] <= 1e-12 * history[0]);
}

TEST(HpcgOperations, AreThoseOfTheOfficialCount) {
  const Geometry geometry(MPI_COMM_SELF, {16, 8, 8});
  const double rows = 16 * 8 * 8;
  const double nonzeros[] = {46.0 * 22 * 22, 22.0 * 10 * 10, 10.0 * 4 * 4, 4.0 * 1 * 1};
  const double iterations = 3 * 50;
  const double vectors = 2 * (3 * iterations + 3) * 2 * rows;
  const double products = (iterations + 3) * 2 * nonzeros[0];
  const double cycles = iterations * (10 * (nonzeros[0] + nonzeros[1] + nonzeros[2]) + 4 * nonzeros[3]);
  EXPECT_DOUBLE_EQ(official_operations(geometry, 3, 50), vectors + products + cycles);
}

}  // namespace
}  // namespace fabricbench::hpcg

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
