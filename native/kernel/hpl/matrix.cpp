#include "kernel/hpl/matrix.hpp"

#include <algorithm>

namespace fabricbench::hpl {
namespace {

constexpr std::uint64_t seed = 100;
constexpr Steps one_step{6364136223846793005U, 1};
constexpr double two_to_64 = 18446744073709551616.0;

}  // namespace

Grid::Grid(MPI_Comm all, int p, int q) : all_(all), p_(p), q_(q) {
  int rank = 0;
  MPI_Comm_rank(all, &rank);
  own_row_ = rank / q;
  own_column_ = rank % q;
  MPI_Comm_split(all, own_row_, own_column_, &row_);
  MPI_Comm_split(all, own_column_, own_row_, &column_);
}

Grid::~Grid() {
  MPI_Comm_free(&row_);
  MPI_Comm_free(&column_);
}

Steps steps(std::uint64_t number) {
  Steps taken;
  Steps power = one_step;
  for (; number > 0; number >>= 1U) {
    if ((number & 1U) != 0) taken = {power.factor * taken.factor, power.factor * taken.summand + power.summand};
    power = {power.factor * power.factor, power.factor * power.summand + power.summand};
  }
  return taken;
}

std::int64_t column_distance(std::int64_t rows) {
  constexpr std::int64_t line = 8;  // numbers of a cache line
  constexpr std::int64_t same_lines =
      256;  // multiples of this lie on the same lines of a first cache, half of them at least
  const std::int64_t whole = std::max<std::int64_t>((rows + line - 1) / line * line, line);
  return whole % same_lines == 0 ? whole + line : whole;
}

Matrix::Matrix(const Grid& grid, std::int64_t n, std::int64_t block)
    : n_(n),
      rows_{block, grid.p(), grid.own_row()},
      columns_{block, grid.q(), grid.own_column()},
      own_rows_(rows_.own_below(n)),
      own_columns_(columns_.own_below(n + 1)),
      distance_(column_distance(own_rows_)),
      entries_(static_cast<std::size_t>(distance_ * own_columns_)) {}

void Matrix::fill() {
  // From the last row of one of our blocks to the first of the next.
  const Steps over = steps(static_cast<std::uint64_t>((rows_.processes - 1) * rows_.block));
  for (std::int64_t column = 0; column < own_columns_; ++column) {
    if (own_rows_ == 0) break;
    const std::int64_t first = columns_.index_of(column) * n_ + rows_.index_of(0);
    std::uint64_t x = steps(static_cast<std::uint64_t>(first) + 1)(seed);
    double* entries = at(0, column);
    for (std::int64_t begin = 0; begin < own_rows_; begin += rows_.block) {
      const std::int64_t end = std::min(begin + rows_.block, own_rows_);
      for (std::int64_t row = begin; row < end; ++row) {
        entries[row] = 0.5 - static_cast<double>(x) / two_to_64;
        x = one_step(x);
      }
      x = over(x);
    }
  }
}

}  // namespace fabricbench::hpl
