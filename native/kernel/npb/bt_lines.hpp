// BT's systems along lines: block-tridiagonal, 5 x 5 blocks made of the Jacobians of the Euler and the viscous fluxes.
#pragma once

#include "kernel/npb/line_sweep.hpp"

namespace fabricbench::npb::navier_stokes {

class BlockTridiagonal {
 public:
  /// After elimination, row by row: the 5 x 5 block on the next point and the right side. The next cell needs the last.
  static constexpr std::size_t kept = 30;
  static constexpr std::size_t lead = 0;
  static constexpr std::size_t scratch = 0;
  static constexpr std::size_t forward = 30;
  static constexpr std::size_t backward = components;

  BlockTridiagonal(int points, double dt);

  template <int d>
  void eliminate(const LineGroup& lines, const Lanes* carried, Lanes* kept_points, Lanes* unused, Lanes* carry) const;
  template <int d>
  void substitute(const LineGroup& lines, const Lanes* kept_points, const Lanes* carried, Lanes* carry) const;

 private:
  double euler_;    // dt / (2h)
  double viscous_;  // dt / h^2
};

}  // namespace fabricbench::npb::navier_stokes
