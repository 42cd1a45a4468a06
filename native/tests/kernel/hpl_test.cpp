// HPL without its program, on however many ranks run this, with a BLAS that is plain to see.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/frame/kernel.hpp"
#include "kernel/frame/level.hpp"
#include "kernel/frame/outcome.hpp"
#include "kernel/hpl/solver.hpp"

namespace fabricbench::kernel {
constinit const std::string_view compiled_level = "native";  // a program of one level: it never becomes another
constinit const bool has_one_level = false;
}  // namespace fabricbench::kernel

namespace fabricbench::hpl {
namespace {

void plain_gemm(const char*, const char*, const std::int64_t* m, const std::int64_t* n, const std::int64_t* k,
                const double* alpha, const double* a, const std::int64_t* lda, const double* b, const std::int64_t* ldb,
                const double* beta, double* c, const std::int64_t* ldc, std::size_t, std::size_t) {
  for (std::int64_t j = 0; j < *n; ++j) {
    for (std::int64_t i = 0; i < *m; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < *k; ++l) sum += a[i + l * *lda] * b[l + j * *ldb];
      c[i + j * *ldc] = *beta * c[i + j * *ldc] + *alpha * sum;
    }
  }
}

void plain_trsm(const char*, const char*, const char*, const char*, const std::int64_t* m, const std::int64_t* n,
                const double*, const double* a, const std::int64_t* lda, double* b, const std::int64_t* ldb,
                std::size_t, std::size_t, std::size_t, std::size_t) {
  for (std::int64_t j = 0; j < *n; ++j) {
    for (std::int64_t i = 0; i < *m; ++i) {
      for (std::int64_t l = i + 1; l < *m; ++l) b[l + j * *ldb] -= a[l + i * *lda] * b[i + j * *ldb];
    }
  }
}

const Blas& plain_blas() {
  static const Blas blas(plain_gemm, plain_trsm, "plain");
  return blas;
}

int all_ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

kernel::Result result_of(const Residual& residual) {
  kernel::Result result;
  result.checks = {{"scaled residual", residual.scaled, Residual::limit, 0, true}};
  return result;
}

/// A system that has been solved, to be looked at and to be spoilt.
struct Solved {
  explicit Solved(std::int64_t n = 61, std::int64_t block = 7)
      : grid(MPI_COMM_WORLD, all_ranks(), 1), matrix(grid, n, block) {
    matrix.fill();
    Solver solver(grid, plain_blas(), matrix, {});
    solver.solve();
    solution = solver.own_solution();
  }
  Residual residual() { return residual_of(grid, matrix, solution); }

  Grid grid;
  Matrix matrix;
  std::vector<double> solution;
};

TEST(HplMatrix, BeginsWithTheNumbersOfTheOfficialProgram) {
  const Grid grid(MPI_COMM_WORLD, 1, all_ranks());
  Matrix matrix(grid, 4, 4);
  matrix.fill();
  if (grid.own_column() != 0) return;
  const double expected[] = {-5.1599441937666e-05, 0.38413122531282, 0.44368366759894, -0.46046395121549};
  for (int row = 0; row < 4; ++row) EXPECT_NEAR(*matrix.at(row, 0), expected[row], 1e-14);
}

TEST(HplMatrix, IsTheSameForEveryGrid) {
  constexpr std::int64_t n = 23;
  const Grid tall(MPI_COMM_WORLD, all_ranks(), 1);
  const Grid alone(MPI_COMM_SELF, 1, 1);
  Matrix part(tall, n, 3);
  Matrix whole(alone, n, 5);
  part.fill();
  whole.fill();
  for (std::int64_t column = 0; column < part.own_columns(); ++column) {
    for (std::int64_t row = 0; row < part.own_rows(); ++row) {
      EXPECT_EQ(*part.at(row, column), *whole.at(part.rows().index_of(row), part.columns().index_of(column)));
    }
  }
}

TEST(HplMatrix, SkipsAnyNumberOfStepsAtOnce) {
  std::uint64_t x = 100;
  for (std::uint64_t number = 0; number < 40; ++number) {
    EXPECT_EQ(steps(number)(100), x);
    x = steps(1)(x);
  }
  EXPECT_EQ(steps(std::uint64_t{1} << 40U)(steps(7)(100)), steps((std::uint64_t{1} << 40U) + 7)(100));
}

TEST(HplLayout, CountsAndFindsItsOwn) {
  for (const int processes : {1, 2, 3, 5}) {
    for (std::int64_t index = 0; index < 60; ++index) {
      std::int64_t owners = 0;
      for (int own = 0; own < processes; ++own) {
        const Dealt dealt{4, processes, own};
        if (dealt.own_below(index + 1) == dealt.own_below(index)) continue;
        EXPECT_EQ(dealt.owner(index), own);
        EXPECT_EQ(dealt.index_of(dealt.own_below(index)), index);
        owners += 1;
      }
      EXPECT_EQ(owners, 1);
    }
  }
}

TEST(HplResidual, OfWhatWasSolvedIsVerified) {
  for (const std::int64_t block : {1, 7, 64}) {
    Solved solved(61, block);
    const Residual residual = solved.residual();
    EXPECT_LT(residual.scaled, 1);
    EXPECT_TRUE(kernel::is_verified(result_of(residual)));
  }
}

TEST(HplResidual, OfASolutionThatIsALittleOffIsWrong) {
  Solved solved;
  for (double& x : solved.solution) x *= 1 + 1e-9;
  const Residual residual = solved.residual();
  EXPECT_GT(residual.scaled, Residual::limit);
  EXPECT_EQ(kernel::after(kernel::Exit::verified, result_of(residual)), kernel::Exit::wrong);
}

TEST(HplResidual, OfOneWrongNumberIsWrong) {
  Solved solved;
  solved.solution[30] += 1e-6;
  EXPECT_FALSE(kernel::is_verified(result_of(solved.residual())));
}

TEST(HplResidual, OfWhatIsNoNumberIsWrong) {
  for (const double none : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Solved solved;
    if (solved.grid.own_row() == 0) solved.solution[5] = none;
    EXPECT_FALSE(kernel::is_verified(result_of(solved.residual())));
  }
}

TEST(HplResidual, OfAMatrixThatWasDamagedOnTheWayIsWrong) {
  const Grid grid(MPI_COMM_WORLD, all_ranks(), 1);
  Matrix matrix(grid, 50, 6);
  matrix.fill();
  if (matrix.own_rows() > 3 && grid.own_row() == 0) *matrix.at(3, 17) += 1e-7;
  Solver solver(grid, plain_blas(), matrix, {});
  solver.solve();
  EXPECT_FALSE(kernel::is_verified(result_of(residual_of(grid, matrix, solver.own_solution()))));
}

TEST(HplSolver, ComesToAnEndWhereTheMatrixHasNoNumbers) {
  const Grid grid(MPI_COMM_WORLD, all_ranks(), 1);
  Matrix matrix(grid, 20, 4);
  matrix.fill();
  for (std::int64_t column = 0; column < matrix.own_columns(); ++column) {
    for (std::int64_t row = 0; row < matrix.own_rows(); ++row)
      *matrix.at(row, column) = std::numeric_limits<double>::quiet_NaN();
  }
  Solver solver(grid, plain_blas(), matrix, {});
  solver.solve();
  EXPECT_FALSE(kernel::is_verified(result_of(residual_of(grid, matrix, solver.own_solution()))));
}

}  // namespace
}  // namespace fabricbench::hpl

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
