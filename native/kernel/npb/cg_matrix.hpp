// The sparse matrix of CG: how it is made, and a block of it that multiplies vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/frame/buffer.hpp"

namespace fabricbench::npb {

using kernel::Buffer;

/// What the matrix is made of; its order is `rows`.
struct CgMatrix {
  std::size_t rows;
  std::size_t vector_entries;  // nonzeros drawn at random for each of the sparse vectors
  double shift;                // what the eigenvalues are moved by
};

/// Consecutive rows or columns [begin, end).
struct IndexRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
  bool contains(std::size_t index) const { return index >= begin && index < end; }
};

/// The entries of the matrix in some rows and columns, in compressed rows. Column is an unsigned integer that holds the
/// number of columns: multiplying is a matter of reading the matrix, so each byte of an entry counts.
template <typename Column>
class SparseBlock {
 public:
  /// Runs the whole generator, as its numbers come in one stream, and keeps what belongs to the block.
  SparseBlock(const CgMatrix& matrix, IndexRange rows, IndexRange columns);

  /// y = A x, with x over the block's columns and y over its rows.
  void multiply(const double* x, double* y) const;

  std::size_t entries() const { return row_begins_[row_begins_.size() - 1]; }

 private:
  void count_entries(const CgMatrix& matrix, IndexRange rows, IndexRange columns);
  void fill(const CgMatrix& matrix, IndexRange rows, IndexRange columns);
  void merge_duplicates(std::size_t columns);

  Buffer<std::size_t> row_begins_;  // of each row, and the end of the last
  Buffer<Column> columns_;
  Buffer<double> values_;
};

extern template class SparseBlock<std::uint16_t>;
extern template class SparseBlock<std::uint32_t>;

}  // namespace fabricbench::npb
