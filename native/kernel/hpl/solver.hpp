// The solution of the system: LU factorisation panel by panel, looking at what is to the right of each, then the
// triangle of U from below.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernel/hpl/blas.hpp"
#include "kernel/hpl/broadcast.hpp"
#include "kernel/hpl/layout.hpp"
#include "kernel/hpl/matrix.hpp"
#include "kernel/hpl/panel.hpp"
#include "kernel/hpl/row_exchange.hpp"

namespace fabricbench::hpl {

struct Method {
  /// Panels that are factored and on their way while the one before is still applied: 0 or 1. A grid of one column
  /// sends none and applies each panel whole, as at 0.
  int depth = 1;
  BroadcastKind broadcast = BroadcastKind::ring_modified;
  SwapKind swap = SwapKind::binary;
};

/// Everything that solving needs, so that nothing is allocated while it is timed.
class Solver {
 public:
  Solver(const Grid& grid, const Blas& blas, Matrix& matrix, const Method& method);

  /// Overwrite [A|b] with U and what is left of b, and find x. Collective.
  void solve();

  /// Of x what belongs to our columns: the same on all ranks of a column of the grid.
  const std::vector<double>& own_solution() const { return solution_; }

 private:
  void factor();
  void solve_upper();
  void take_panel(Panel& panel, std::int64_t begin);
  void share_panel(Panel& panel);
  void apply(const Panel& panel, std::int64_t first, std::int64_t end, bool is_polling);
  void subtract(std::int64_t first_row, std::int64_t end_row, std::int64_t first_column, std::int64_t columns,
                const double* x);
  int owner_of(const Panel& panel) const { return matrix_.columns().owner(panel.begin()); }
  bool is_own(const Panel& panel) const { return owner_of(panel) == matrix_.columns().own; }

  const Grid& grid_;
  const Blas& blas_;
  Matrix& matrix_;
  Method method_;
  PanelFactorization factorization_;
  RowExchange exchange_;
  std::array<Panel, 2> panels_;
  Broadcast broadcast_;
  Buffer<double> top_;  // the panel's own rows, where ranks above or below have to know them
  std::vector<double> solution_;
  std::vector<double> right_side_;  // of our rows, less what is known of x
  std::vector<double> segment_;
};

/// How far a solution is from solving the system.
struct Residual {
  /// |A x - b| / (eps (|A| |x| + |b|) n) in the largest norm. Infinite where something is no number.
  double scaled = 0;
  static constexpr double limit = 16;
};

/// Make the system again, into the same memory, and put the solution into it. Collective.
Residual residual_of(const Grid& grid, Matrix& matrix, const std::vector<double>& own_solution);

}  // namespace fabricbench::hpl
