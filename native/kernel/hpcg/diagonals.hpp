// The matrix as what its rows have for each of the 27 directions, whose places the grid tells without an index: eight
// rows of a line of the grid side by side, so that a vector instruction works at eight of them.
//
// Gauss-Seidel stays in the order of the rows. Of what a point needs only its neighbour before it on its own line is
// not known when the line begins; the sums of all others come first, eight at once, and a short recurrence along the
// line remains. So it takes the iterations that the plain loops take.
//
// Coefficients are all stored and read, none is taken for known; what is left out is work without effect: products with
// an x that is zero, and residuals of points that the coarser grid does not have.
#pragma once

#include <cstddef>
#include <functional>

#include "kernel/frame/buffer.hpp"
#include "kernel/hpcg/geometry.hpp"

namespace fabricbench::hpcg {

class Diagonals {
 public:
  /// Throws std::bad_alloc.
  explicit Diagonals(const Geometry& geometry);

  // As of Rows (rows.hpp).
  void multiply(const double* x, double* y) const;
  void smooth(const double* r, double* x) const;
  void smooth_zero(const double* r, double* x) const;
  void restrict_residual(const double* r, const double* x, const Box& coarse, double* out) const;
  void set_diagonal(const std::function<double(int i, int j, int k)>& of);
  double dot(const double* a, const double* b) const;

 private:
  /// Of eight rows, from that of a point on.
  double* group(int i, int j, int k);
  const double* line(int j, int k) const;
  template <bool is_from_zero>
  void sweep_forward(const double* r, double* x) const;
  void sweep_backward(const double* r, double* x) const;

  Box box_;
  std::size_t groups_;  // of a line, the last perhaps with rows that there are not: a diagonal of 1 and zeros
  kernel::Buffer<double> values_;
};

}  // namespace fabricbench::hpcg
