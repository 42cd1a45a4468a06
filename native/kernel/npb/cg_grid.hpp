// How CG spreads its matrix and vectors over ranks, and the exchanges that follow from it.
//
// p = m R^2 ranks form a grid of R rows by C = m R columns with the largest R for which that works, so R x R or R x 2R
// for powers of two, and 1 x p for primes. Rank (i, j) holds the block of the matrix in row range i and column range j;
// column range j is the (j mod m)th part of row range j / m. Vectors are spread by column ranges, and each row of the
// grid has all of them.
//
// A product leaves in (i, j) a share of all of row range i. Let j = k m + a. First the m neighbours with the same k
// exchange parts, so that each has the sum for its part a only; then the R ranks with the same a double up. Now (i, j)
// has the a-th part of row range i, which is column range i m + a, and swaps with (k, i m + a), whose column range that
// is and which has what (i, j) needs.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "kernel/frame/buffer.hpp"
#include "kernel/npb/cg_matrix.hpp"

namespace fabricbench::npb {

class CgGrid {
 public:
  CgGrid(MPI_Comm communicator, std::size_t order);

  IndexRange rows() const { return rows_; }
  IndexRange columns() const { return columns_; }

  /// Sum over the grid's row, same bits on all of it.
  void sum(double* values, int count) const;

  /// From the shares of a product, over rows(), to the sums over columns(). Overwrites the shares; the result lies in
  /// them or in the grid's own memory until the next call.
  const double* gather(double* shares);

 private:
  /// Members of a group are ranks first, first + stride, ...
  struct Group {
    int first, stride, size, own;
    int rank(int member) const { return first + member * stride; }
  };

  void sum_within(const Group& group, double* values, double* received, int count) const;
  void sum_own_part(double* shares);
  IndexRange part(int index) const { return part_of(rows_, parts_, index); }
  static IndexRange part_of(IndexRange whole, int parts, int index);

  MPI_Comm communicator_;
  int parts_;  // m
  int part_;   // a
  Group row_, neighbours_, alike_;
  int partner_;
  int own_rank_;
  IndexRange rows_;
  IndexRange columns_;
  Buffer<double> received_;
};

}  // namespace fabricbench::npb
