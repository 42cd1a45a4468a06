// Where things are: P x Q ranks, over which blocks of NB x NB numbers are dealt out in turn in both directions
// (block-cyclic). Rank r is in row r / Q and column r % Q of the grid.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace fabricbench::hpl {

/// One direction of the distribution, as one process sees it.
struct Dealt {
  std::int64_t block = 1;
  int processes = 1;
  int own = 0;

  int owner(std::int64_t index) const { return static_cast<int>(index / block % processes); }
  /// How many indices below this one are our own: where it would lie.
  std::int64_t own_below(std::int64_t index) const {
    const std::int64_t blocks = index / block;
    const std::int64_t turn = blocks % processes;
    return blocks / processes * block + (own < turn ? block : own == turn ? index % block : 0);
  }
  std::int64_t index_of(std::int64_t own_index) const {
    return (own_index / block * processes + own) * block + own_index % block;
  }
};

/// The grid's communicators; freed with it.
class Grid {
 public:
  Grid(MPI_Comm all, int p, int q);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  MPI_Comm all() const { return all_; }
  MPI_Comm row() const { return row_; }        // of ranks beside each other, numbered by their columns
  MPI_Comm column() const { return column_; }  // of ranks over each other, numbered by their rows
  int p() const { return p_; }
  int q() const { return q_; }
  int own_row() const { return own_row_; }
  int own_column() const { return own_column_; }

 private:
  MPI_Comm all_;
  MPI_Comm row_ = MPI_COMM_NULL;
  MPI_Comm column_ = MPI_COMM_NULL;
  int p_;
  int q_;
  int own_row_ = 0;
  int own_column_ = 0;
};

}  // namespace fabricbench::hpl
