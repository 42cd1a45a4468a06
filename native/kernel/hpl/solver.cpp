#include "kernel/hpl/solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fabricbench::hpl {

namespace {

/// Columns between two looks at what has arrived: enough for a product to be fast.
constexpr std::int64_t columns_together = 384;

}  // namespace

Solver::Solver(const Grid& grid, const Blas& blas, Matrix& matrix, const Method& method)
    : grid_(grid),
      blas_(blas),
      matrix_(matrix),
      method_(method),
      factorization_(grid, blas, std::min(matrix.block(), matrix.n())),
      exchange_(grid, matrix, method.swap),
      panels_{Panel(matrix, grid.q() > 1), Panel(matrix, grid.q() > 1)},
      broadcast_(grid, method.broadcast),
      solution_(static_cast<std::size_t>(matrix.columns().own_below(matrix.n()))),
      right_side_(static_cast<std::size_t>(matrix.own_rows())),
      segment_(static_cast<std::size_t>(2 * matrix.block())) {
  const std::int64_t block = std::min(matrix.block(), matrix.n());
  if (grid.p() > 1) top_ = Buffer<double>(static_cast<std::size_t>(block * matrix.own_columns()));
}

void Solver::solve() {
  factor();
  solve_upper();
}

void Solver::factor() {
  const std::int64_t n = matrix_.n();
  const std::int64_t block = matrix_.block();
  const Dealt& columns = matrix_.columns();
  take_panel(panels_[0], 0);
  share_panel(panels_[0]);
  broadcast_.wait();
  int current = 0;
  for (std::int64_t begin = 0; begin < n; begin += block, current ^= 1) {
    const Panel& panel = panels_[current];
    Panel& next = panels_[current ^ 1];
    const bool has_next = begin + block < n;
    std::int64_t first = columns.own_below(panel.end());
    exchange_.plan(panel);
    if (has_next && method_.depth > 0 && panel.is_sent()) {
      // The next panel's columns first, so that it is on its way while the others are updated.
      broadcast_.finish();  // of the panel before this one, in whose memory the next one comes
      next.take(matrix_, begin + block);
      if (is_own(next)) {
        apply(panel, first, first + next.width(), false);
        first += next.width();
        factorization_.factor(matrix_, next);
      }
      share_panel(next);
      apply(panel, first, matrix_.own_columns(), true);
    } else {
      apply(panel, first, matrix_.own_columns(), false);
      if (!has_next) break;
      take_panel(next, begin + block);
      share_panel(next);
    }
    broadcast_.wait();
  }
  broadcast_.finish();
}

void Solver::take_panel(Panel& panel, std::int64_t begin) {
  broadcast_.finish();
  panel.take(matrix_, begin);
  if (is_own(panel)) factorization_.factor(matrix_, panel);
}

void Solver::share_panel(Panel& panel) { broadcast_.start(panel.message(), panel.message_size(), owner_of(panel)); }

/// What a panel means for some of our columns to the right of it: its rows exchanged, its own rows solved for U, and
/// their product with L taken off the rows below.
void Solver::apply(const Panel& panel, std::int64_t first, std::int64_t end, bool is_polling) {
  if (first >= end) return;
  exchange_.apply(matrix_, first, end, top_.data());
  const std::int64_t width = panel.width();
  const std::int64_t row = matrix_.rows().own_below(panel.begin());
  const std::int64_t below = matrix_.rows().own_below(panel.end());
  const bool is_alone = grid_.p() == 1;
  double* const top = is_alone ? matrix_.at(row, first) : top_.data();
  const std::int64_t top_distance = is_alone ? matrix_.distance() : width;
  for (std::int64_t begin = first; begin < end;) {
    // In parts only as long as there is something to look at: each part reads L again.
    const bool is_part = is_polling && broadcast_.poll();
    const std::int64_t count = is_part ? std::min(columns_together, end - begin) : end - begin;
    double* const part = top + (begin - first) * top_distance;
    blas_.solve_unit_lower(width, count, panel.square(), panel.square_distance(), part, top_distance);
    blas_.subtract_product(panel.below_height(), count, width, panel.below(), panel.rows_distance(), part, top_distance,
                           matrix_.at(below, begin), matrix_.distance());
    begin += count;
  }
  if (is_alone || matrix_.rows().owner(panel.begin()) != matrix_.rows().own) return;
  for (std::int64_t column = first; column < end; ++column)
    std::copy_n(top + (column - first) * width, width, matrix_.at(row, column));
}

/// Block by block from the last: the ranks of the block's row sum up what they know of its right side, the one that has
/// its triangle solves it and tells the ranks of its column, who take its product off their rows. Those that the next
/// block waits for come first, the others while it is solved elsewhere.
void Solver::solve_upper() {
  const Dealt& rows = matrix_.rows();
  const Dealt& columns = matrix_.columns();
  const std::int64_t n = matrix_.n();
  const std::int64_t block = matrix_.block();
  std::ranges::fill(right_side_, 0);
  if (matrix_.has_right_side())
    std::copy_n(matrix_.at(0, columns.own_below(n)), matrix_.own_rows(), right_side_.data());
  std::int64_t waiting_rows = 0;  // that the last block of our columns has not been taken off yet
  std::int64_t waiting_column = 0;
  std::int64_t waiting_columns = 0;
  for (std::int64_t begin = (n - 1) / block * block; begin >= 0; begin -= block) {
    const std::int64_t width = std::min(block, n - begin);
    const std::int64_t row = rows.own_below(begin);
    const std::int64_t column = columns.own_below(begin);
    const bool is_own_row = rows.owner(begin) == rows.own;
    const bool is_own_column = columns.owner(begin) == columns.own;
    double* const x = segment_.data();
    if (is_own_row && grid_.q() > 1) {
      MPI_Reduce(&right_side_[static_cast<std::size_t>(row)], x, static_cast<int>(width), MPI_DOUBLE, MPI_SUM,
                 columns.owner(begin), grid_.row());
    } else if (is_own_row) {
      std::copy_n(&right_side_[static_cast<std::size_t>(row)], width, x);
    }
    if (waiting_rows > 0 && !is_own_column) {
      subtract(0, waiting_rows, waiting_column, waiting_columns, &solution_[static_cast<std::size_t>(waiting_column)]);
      waiting_rows = 0;
    }
    if (!is_own_column) continue;
    if (is_own_row) {
      for (std::int64_t i = width - 1; i >= 0; --i) {
        const double* const upper = matrix_.at(row, column + i);
        x[i] /= upper[i];
        for (std::int64_t above = 0; above < i; ++above) x[above] -= upper[above] * x[i];
      }
    }
    if (grid_.p() > 1) MPI_Bcast(x, static_cast<int>(width), MPI_DOUBLE, rows.owner(begin), grid_.column());
    std::copy_n(x, width, &solution_[static_cast<std::size_t>(column)]);
    if (waiting_rows > 0) {
      subtract(0, waiting_rows, waiting_column, waiting_columns, &solution_[static_cast<std::size_t>(waiting_column)]);
    }
    const std::int64_t urgent = rows.own_below(std::max<std::int64_t>(begin - block, 0));
    subtract(urgent, row, column, width, x);
    waiting_rows = urgent;
    waiting_column = column;
    waiting_columns = width;
  }
}

/// Take the product of some of our columns with their part of x off some of our rows.
void Solver::subtract(std::int64_t first_row, std::int64_t end_row, std::int64_t first_column, std::int64_t columns,
                      const double* x) {
  double* const sum = right_side_.data();
  std::int64_t column = 0;
  for (; column + 4 <= columns; column += 4) {
    const double* const a = matrix_.at(0, first_column + column);
    const double* const b = a + matrix_.distance();
    const double* const c = b + matrix_.distance();
    const double* const d = c + matrix_.distance();
    const double* const part = x + column;
    for (std::int64_t row = first_row; row < end_row; ++row)
      sum[row] -= a[row] * part[0] + b[row] * part[1] + c[row] * part[2] + d[row] * part[3];
  }
  for (; column < columns; ++column) {
    const double* const a = matrix_.at(0, first_column + column);
    for (std::int64_t row = first_row; row < end_row; ++row) sum[row] -= a[row] * x[column];
  }
}

Residual residual_of(const Grid& grid, Matrix& matrix, const std::vector<double>& own_solution) {
  matrix.fill();
  const auto rows = static_cast<std::size_t>(matrix.own_rows());
  std::vector<double> sums(2 * rows);  // A x - b, and the sums of sizes: row by row
  double largest_b = 0;
  double largest_x = 0;
  for (std::size_t column = 0; column < own_solution.size(); ++column) {
    const double x = own_solution[column];
    largest_x = std::max(largest_x, std::isfinite(x) ? std::abs(x) : std::numeric_limits<double>::infinity());
    const double* const a = matrix.at(0, static_cast<std::int64_t>(column));
    for (std::size_t row = 0; row < rows; ++row) {
      sums[row] += a[row] * x;
      sums[rows + row] += std::abs(a[row]);
    }
  }
  if (matrix.has_right_side()) {
    const double* const b = matrix.at(0, matrix.columns().own_below(matrix.n()));
    for (std::size_t row = 0; row < rows; ++row) {
      sums[row] -= b[row];
      largest_b = std::max(largest_b, std::abs(b[row]));
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(2 * rows), MPI_DOUBLE, MPI_SUM, grid.row());
  std::array<double, 4> largest{0, 0, largest_x, largest_b};
  for (std::size_t row = 0; row < rows; ++row) {
    const double size = std::abs(sums[row]);
    largest[0] = std::max(largest[0], std::isfinite(size) ? size : std::numeric_limits<double>::infinity());
    largest[1] = std::max(largest[1], sums[rows + row]);
  }
  MPI_Allreduce(MPI_IN_PLACE, largest.data(), static_cast<int>(largest.size()), MPI_DOUBLE, MPI_MAX, grid.all());
  const auto [difference, a, x, b] = largest;
  if (!std::isfinite(difference) || !std::isfinite(x)) return {std::numeric_limits<double>::infinity()};
  constexpr double unit_roundoff = std::numeric_limits<double>::epsilon() / 2;
  return {difference / (unit_roundoff * (a * x + b) * static_cast<double>(matrix.n()))};
}

}  // namespace fabricbench::hpl
