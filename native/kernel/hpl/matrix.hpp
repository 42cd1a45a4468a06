// The system that is solved: n equations, made from a sequence of random numbers, and this rank's share of it.
//
// The entries of the n x (n + 1) matrix [A|b], column by column, are those of X_k = (a X_(k-1) + 1) mod 2^64 from
// X_0 = 100, as 0.5 - X_k / 2^64. As k steps of it are one of the same kind, with other numbers, each rank makes its
// own entries, and the system is the same for every grid of ranks: that of the official program.
#pragma once

#include <cstdint>

#include "kernel/frame/buffer.hpp"
#include "kernel/hpl/layout.hpp"

namespace fabricbench::hpl {

using kernel::Buffer;

/// So many steps of the sequence: X -> factor X + summand.
struct Steps {
  std::uint64_t factor = 1;
  std::uint64_t summand = 0;
  std::uint64_t operator()(std::uint64_t x) const { return factor * x + summand; }
};
Steps steps(std::uint64_t number);

/// A distance between columns, in numbers, that does not put them all on the same lines of a cache.
std::int64_t column_distance(std::int64_t rows);

class Matrix {
 public:
  /// Throws std::bad_alloc.
  Matrix(const Grid& grid, std::int64_t n, std::int64_t block);

  /// Make the entries of [A|b], again where they were overwritten.
  void fill();

  std::int64_t n() const { return n_; }
  std::int64_t block() const { return rows_.block; }
  const Dealt& rows() const { return rows_; }
  const Dealt& columns() const { return columns_; }
  std::int64_t own_rows() const { return own_rows_; }
  std::int64_t own_columns() const { return own_columns_; }  // that of b included where it is ours
  std::int64_t distance() const { return distance_; }
  bool has_right_side() const { return columns_.owner(n_) == columns_.own; }
  double* at(std::int64_t own_row, std::int64_t own_column) {
    return &entries_.data()[own_row + own_column * distance_];
  }
  const double* at(std::int64_t own_row, std::int64_t own_column) const {
    return &entries_.data()[own_row + own_column * distance_];
  }

 private:
  std::int64_t n_;
  Dealt rows_;
  Dealt columns_;
  std::int64_t own_rows_;
  std::int64_t own_columns_;
  std::int64_t distance_;
  Buffer<double> entries_;
};

}  // namespace fabricbench::hpl
