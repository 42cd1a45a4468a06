// A panel: NB columns that are factored together, by the ranks of one column of the grid, and then sent along the rows.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "kernel/hpl/blas.hpp"
#include "kernel/hpl/layout.hpp"
#include "kernel/hpl/matrix.hpp"

namespace fabricbench::hpl {

/// What a rank of any column needs of a panel, in one piece that can be sent as it is: which rows were exchanged, the
/// square of the factors where they meet, and of the rows below it this rank's share. Where the grid has one column
/// nothing is sent, and the rows stay where they are in the matrix.
class Panel {
 public:
  Panel(const Matrix& matrix, bool is_sent);

  /// Make it that of the columns from `begin`.
  void take(Matrix& matrix, std::int64_t begin);

  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return begin_ + width_; }
  std::int64_t width() const { return width_; }
  /// The row with which row begin + i was exchanged, as a number of the message.
  double* pivots() { return message_.data(); }
  const double* pivots() const { return message_.data(); }
  /// L below the diagonal and U above it and on it, width x width.
  double* square() { return message_.data() + square_offset_; }
  const double* square() const { return message_.data() + square_offset_; }
  std::int64_t square_distance() const { return block_; }
  /// This rank's rows from the panel's first on; the first row of the grid that has the panel's own rows, which are
  /// left as they are, before those below it.
  double* rows() { return rows_begin_; }
  const double* below() const { return rows_begin_ + own_height_ - below_height_; }
  std::int64_t rows_distance() const { return distance_; }
  std::int64_t own_height() const { return own_height_; }
  std::int64_t below_height() const { return below_height_; }

  bool is_sent() const { return is_sent_; }
  double* message() { return message_.data(); }
  std::int64_t message_size() const { return rows_offset_ + distance_ * width_; }

 private:
  Dealt rows_;
  std::int64_t n_;
  bool is_sent_;
  std::int64_t block_;
  std::int64_t square_offset_;
  std::int64_t rows_offset_;
  Buffer<double> message_;
  double* rows_begin_ = nullptr;
  std::int64_t begin_ = 0;
  std::int64_t width_ = 0;
  std::int64_t distance_ = 0;
  std::int64_t own_height_ = 0;
  std::int64_t below_height_ = 0;
};

/// Factors panels, with row exchanges so that each pivot is the largest number of its column. Of several as large it is
/// the one in the first row, so that grids of any shape choose alike.
class PanelFactorization {
 public:
  PanelFactorization(const Grid& grid, const Blas& blas, std::int64_t block);
  ~PanelFactorization();
  PanelFactorization(const PanelFactorization&) = delete;
  PanelFactorization& operator=(const PanelFactorization&) = delete;

  /// Factor the panel's columns of the matrix, which get its factor U. Collective over the column of the grid that has
  /// them.
  void factor(Matrix& matrix, Panel& panel);

 private:
  struct Work;
  void factor_columns(Work& work, std::int64_t first, std::int64_t count);
  void factor_few(Work& work, std::int64_t first, std::int64_t count);
  void choose_pivot(Work& work, std::int64_t column);

  const Grid& grid_;
  const Blas& blas_;
  std::int64_t block_;
  Buffer<double> candidate_;  // of this rank for a pivot, then of all
  MPI_Datatype candidate_type_ = MPI_DATATYPE_NULL;
  MPI_Op larger_ = MPI_OP_NULL;
};

}  // namespace fabricbench::hpl
