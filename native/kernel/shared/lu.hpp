// LU factors of a dense matrix without pivoting, by blocks in shared memory, after LU of SPLASH-2 with contiguous
// blocks (Woo, Ohara, Torrie, Singh and Gupta, "The SPLASH-2 Programs", ISCA 1995).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/shared/memory.hpp"

namespace fabricbench::shared {

/// Which rank changes which block, and where in shared memory it is: blocks are dealt out over a grid of ranks in both
/// dimensions, and each rank's are beside each other, column after column.
class Blocks {
 public:
  Blocks(std::int64_t n, std::int64_t size, int ranks);

  int owner(std::size_t row, std::size_t column) const {
    return static_cast<int>(row % rows_of_ranks_ * columns_of_ranks_ + column % columns_of_ranks_);
  }
  /// Its place among those of its owner.
  std::size_t slot(std::size_t row, std::size_t column) const {
    return column / columns_of_ranks_ * rows_of_each_ + row / rows_of_ranks_;
  }
  std::size_t offset(const Memory& memory, std::size_t row, std::size_t column) const {
    return memory.stretch_of(owner(row, column)) + slot(row, column) * bytes();
  }

  std::int64_t n() const { return n_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * size_ * sizeof(double); }
  std::size_t along() const { return along_; }  // blocks along each dimension
  std::size_t rows_of_ranks() const { return rows_of_ranks_; }
  std::size_t columns_of_ranks() const { return columns_of_ranks_; }
  /// Pages that each rank has for its blocks.
  std::size_t pages_of_each(std::size_t page_bytes) const;

 private:
  std::int64_t n_;
  std::size_t size_;
  std::size_t along_;
  std::size_t rows_of_ranks_;
  std::size_t columns_of_ranks_;
  std::size_t rows_of_each_;
  std::size_t columns_of_each_;
};

/// An entry of the matrix: random in [-1, 1), and n more on the diagonal, so that it is the larger part of its row.
/// Where blocks go beyond the matrix they have those of the identity, which change no factor.
double entry(std::int64_t n, std::int64_t row, std::int64_t column);

/// Write this rank's blocks of the matrix. Collective.
void fill(Memory& memory, const Blocks& blocks);

/// Replace the matrix by its factors: L below the diagonal, whose own diagonal is 1, and U. Collective.
void factor(Memory& memory, const Blocks& blocks);

/// |L U v - A v| / (eps |A| |v| n) in the largest norm, for a random v and the matrix made again. Collective.
double residual(Memory& memory, const Blocks& blocks);

/// Of the bits of the factors, the same on any number of ranks. Collective.
std::uint64_t fingerprint(Memory& memory, const Blocks& blocks);

/// Floating-point operations of the factorisation.
constexpr double operations(std::int64_t n) {
  const auto equations = static_cast<double>(n);
  return equations * (equations - 1) / 2 + equations * (equations - 1) * (2 * equations - 1) / 3;
}

}  // namespace fabricbench::shared
