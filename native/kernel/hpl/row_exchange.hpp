// Exchanging rows between the ranks of a column of the grid as the pivots of a panel demand: the rows that become the
// panel's own go to all of them, those whose place they take to where they came from.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel/hpl/layout.hpp"
#include "kernel/hpl/matrix.hpp"
#include "kernel/hpl/panel.hpp"

namespace fabricbench::hpl {

enum class SwapKind {
  binary,      // each rank tells one other all that it knows, then one twice as far: few messages
  spread_roll  // the rows of each rank go around a ring: each link carries them once
};
inline constexpr std::array<std::string_view, 2> swap_names{"binary", "long"};

class RowExchange {
 public:
  RowExchange(const Grid& grid, const Matrix& matrix, SwapKind kind);

  /// Learn which rows a panel exchanges.
  void plan(const Panel& panel);

  /// Exchange them in these columns of ours, and put the panel's own rows into `top`, a column of it after the other.
  /// Without ranks above or below they stay in the matrix, and `top` is not touched. Collective over the column.
  void apply(Matrix& matrix, std::int64_t first, std::int64_t end, double* top);

 private:
  struct Moved {
    std::int64_t row;   // of ours, or of the panel's own rows
    std::int64_t from;  // the same, of where it comes from
  };
  /// The rows of one rank that become the panel's own, and the panel's own that take their places. Both in the order in
  /// which that rank has them in memory.
  struct Share {
    std::vector<Moved> tops;       // to one of the panel's own rows, from a row of this rank
    std::vector<Moved> displaced;  // to a row of this rank, from one of the panel's rank
  };
  void apply_alone(Matrix& matrix, std::int64_t first, std::int64_t end);
  void send_displaced(const Matrix& matrix, std::int64_t first, std::int64_t count);
  void share_binary(std::int64_t count);
  void share_around(std::int64_t count);
  double* share_of(int rank, std::int64_t count);
  std::int64_t numbers_of(int first_rank, int ranks, std::int64_t count) const;

  const Grid& grid_;
  Dealt rows_;
  SwapKind kind_;
  int doubling_;  // the largest power of two that is no more than the ranks
  std::int64_t width_ = 0;
  std::int64_t panel_begin_ = 0;
  int owner_ = 0;                      // of the panel's own rows
  std::vector<Share> shares_;          // by rank
  std::vector<std::int64_t> content_;  // which row has come to lie in each
  std::vector<std::int64_t> offsets_;  // rows before those of each rank in the buffer
  Buffer<double> gathered_;            // the panel's own rows, rank by rank
  Buffer<double> displaced_;
  Buffer<double> few_;  // rows of one column
  std::vector<MPI_Request> requests_;
};

}  // namespace fabricbench::hpl
