#include "kernel/hpl/panel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fabricbench::hpl {
namespace {

/// Columns that are updated one by one: fewer would make products too thin to be fast, more would read memory too
/// often.
constexpr std::int64_t few_columns = 8;

/// Rows that are updated together: few enough for the columns of a leaf to stay in the first cache.
constexpr std::int64_t rows_together = 256;

/// A candidate for a pivot: a head, its row, and from the rank that has it the row that it takes the place of.
enum Head : std::int64_t { width_of, size_of, row_of, has_place, head_size };

/// MPI_User_function: keep the larger of two candidates, and the place's row from whoever has it.
void keep_larger(void* in, void* in_out, int* count, MPI_Datatype* type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *count; ++i) {
    const auto* one = reinterpret_cast<const double*>(static_cast<const char*>(in) + i * extent);
    auto* other = reinterpret_cast<double*>(static_cast<char*>(in_out) + i * extent);
    const auto width = static_cast<std::int64_t>(one[width_of]);
    const bool is_first = one[size_of] == other[size_of] && one[row_of] < other[row_of];
    if (one[row_of] >= 0 && (other[row_of] < 0 || one[size_of] > other[size_of] || is_first)) {
      other[size_of] = one[size_of];
      other[row_of] = one[row_of];
      std::copy_n(one + head_size, width, other + head_size);
    }
    if (one[has_place] != 0) {
      other[has_place] = 1;
      std::copy_n(one + head_size + width, width, other + head_size + width);
    }
  }
}

struct Largest {
  double size = -1;
  std::int64_t row = -1;
};

/// The largest size and where it is first; -1 of no rows.
Largest largest(const double* column, std::int64_t first, std::int64_t end) {
  constexpr std::int64_t lanes = 16;
  constexpr std::int64_t together = 8 * lanes;
  Largest found;
  const auto look_at_all = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t row = from; row < to; ++row) {
      // A number that is none is taken where nothing else was: the check of the result will find it.
      if (const double size = std::abs(column[row]); size > found.size || found.row < 0) found = {size, row};
    }
  };
  std::int64_t row = first;
  for (; row + together <= end; row += together) {
    std::array<double, lanes> most{};
    for (std::int64_t i = 0; i < together; i += lanes) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const double size = std::abs(column[row + i + lane]);
        most[lane] = size > most[lane] ? size : most[lane];
      }
    }
    if (found.row < 0 || *std::ranges::max_element(most) > found.size) look_at_all(row, row + together);
  }
  look_at_all(row, end);
  return found;
}

std::int64_t round_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

}  // namespace

Panel::Panel(const Matrix& matrix, bool is_sent)
    : rows_(matrix.rows()),
      n_(matrix.n()),
      is_sent_(is_sent),
      block_(std::min(matrix.block(), matrix.n())),
      square_offset_(round_up(block_, 8)),
      rows_offset_(square_offset_ + round_up(block_ * block_, 8)),
      // The distance of fewer rows may be a line more than that of more.
      message_(
          static_cast<std::size_t>(rows_offset_ + (is_sent ? (column_distance(matrix.own_rows()) + 8) * block_ : 0))) {}

void Panel::take(Matrix& matrix, std::int64_t begin) {
  begin_ = begin;
  width_ = std::min(block_, n_ - begin);
  own_height_ = rows_.own_below(n_) - rows_.own_below(begin_);
  below_height_ = rows_.own_below(n_) - rows_.own_below(begin_ + width_);
  distance_ = is_sent_ ? column_distance(own_height_) : matrix.distance();
  rows_begin_ = is_sent_ ? message_.data() + rows_offset_
                         : matrix.at(rows_.own_below(begin_), matrix.columns().own_below(begin_));
}

/// A panel that is being factored. Its rows are numbered from the first of this rank's; those above `top` of a column
/// are pivots, and what has become of them is in the square.
struct PanelFactorization::Work {
  Panel& panel;
  const Dealt& rows;
  bool has_own_rows;  // those of the panel's own columns
  std::int64_t first_own_row;

  std::int64_t top(std::int64_t column) const { return has_own_rows ? column : 0; }
  std::int64_t height() const { return panel.own_height(); }
  double* column(std::int64_t index) const { return panel.rows() + index * panel.rows_distance(); }
  double* square(std::int64_t row, std::int64_t column) const {
    return panel.square() + row + column * panel.square_distance();
  }
};

PanelFactorization::PanelFactorization(const Grid& grid, const Blas& blas, std::int64_t block)
    : grid_(grid), blas_(blas), block_(block), candidate_(static_cast<std::size_t>(2 * (head_size + 2 * block))) {
  MPI_Type_contiguous(static_cast<int>(head_size + 2 * block), MPI_DOUBLE, &candidate_type_);
  MPI_Type_commit(&candidate_type_);
  MPI_Op_create(keep_larger, 1, &larger_);
}

PanelFactorization::~PanelFactorization() {
  MPI_Op_free(&larger_);
  MPI_Type_free(&candidate_type_);
}

void PanelFactorization::factor(Matrix& matrix, Panel& panel) {
  const Dealt& rows = matrix.rows();
  const std::int64_t row = rows.own_below(panel.begin());
  const std::int64_t column = matrix.columns().own_below(panel.begin());
  Work work{panel, rows, rows.owner(panel.begin()) == rows.own, row};
  if (panel.is_sent()) {
    for (std::int64_t i = 0; i < panel.width(); ++i)
      std::copy_n(matrix.at(row, column + i), panel.own_height(), work.column(i));
  }
  factor_columns(work, 0, panel.width());
  if (!work.has_own_rows) return;
  for (std::int64_t i = 0; i < panel.width(); ++i)
    std::copy_n(work.square(0, i), panel.width(), matrix.at(row, column + i));
}

/// The left half, then what it means for the right half, then that one.
void PanelFactorization::factor_columns(Work& work, std::int64_t first, std::int64_t count) {
  if (count <= few_columns) {
    factor_few(work, first, count);
    return;
  }
  const std::int64_t left = round_up(count / 2, few_columns);
  const std::int64_t right = count - left;
  const std::int64_t middle = first + left;
  factor_columns(work, first, left);
  const Panel& panel = work.panel;
  blas_.solve_unit_lower(left, right, work.square(first, first), panel.square_distance(), work.square(first, middle),
                         panel.square_distance());
  const std::int64_t top = work.top(middle);
  blas_.subtract_product(work.height() - top, right, left, work.column(first) + top, panel.rows_distance(),
                         work.square(first, middle), panel.square_distance(), work.column(middle) + top,
                         panel.rows_distance());
  factor_columns(work, middle, right);
}

void PanelFactorization::factor_few(Work& work, std::int64_t first, std::int64_t count) {
  const std::int64_t end = first + count;
  for (std::int64_t column = first; column < end; ++column) {
    choose_pivot(work, column);
    const double pivot = *work.square(column, column);
    if (pivot == 0) continue;  // all below are 0 as well
    const double inverse = 1 / pivot;
    double* const own = work.column(column);
    for (std::int64_t begin = work.top(column + 1); begin < work.height(); begin += rows_together) {
      const std::int64_t stop = std::min(begin + rows_together, work.height());
      for (std::int64_t row = begin; row < stop; ++row) own[row] *= inverse;
      for (std::int64_t right = column + 1; right < end; ++right) {
        const double factor = *work.square(column, right);
        double* const other = work.column(right);
        for (std::int64_t row = begin; row < stop; ++row) other[row] -= own[row] * factor;
      }
    }
  }
}

/// Find the pivot of a column over all ranks, put its row into the square, and the row that it takes the place of where
/// it was.
void PanelFactorization::choose_pivot(Work& work, std::int64_t column) {
  Panel& panel = work.panel;
  const std::int64_t width = panel.width();
  const Largest own = largest(work.column(column), work.top(column), work.height());
  double* chosen = candidate_.data();
  chosen[width_of] = static_cast<double>(width);
  // What is no number compares with nothing, and ranks would disagree.
  chosen[size_of] = std::isnan(own.size) ? std::numeric_limits<double>::infinity() : own.size;
  chosen[row_of] = own.row < 0 ? -1 : static_cast<double>(work.rows.index_of(work.first_own_row + own.row));
  chosen[has_place] = work.has_own_rows ? 1 : 0;
  for (std::int64_t i = 0; i < width; ++i) {
    if (own.row >= 0) chosen[head_size + i] = work.column(i)[own.row];
    if (work.has_own_rows) chosen[head_size + width + i] = work.column(i)[column];
  }
  if (grid_.p() > 1) {
    double* const all = chosen + head_size + 2 * block_;
    MPI_Allreduce(chosen, all, 1, candidate_type_, larger_, grid_.column());
    chosen = all;
  }
  const auto row = static_cast<std::int64_t>(chosen[row_of]);
  panel.pivots()[column] = chosen[row_of];
  for (std::int64_t i = 0; i < width; ++i) *work.square(column, i) = chosen[head_size + i];
  if (work.rows.owner(row) != work.rows.own) return;
  const std::int64_t place = work.rows.own_below(row) - work.first_own_row;
  for (std::int64_t i = 0; i < width; ++i) work.column(i)[place] = chosen[head_size + width + i];
}

}  // namespace fabricbench::hpl
