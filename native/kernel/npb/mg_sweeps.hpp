// The operators of MG as sweeps over a field. A level's fields do not fit in cache, so what follows each other on the
// same points is one sweep: planes run through it like through a pipeline, and the residual between two operators lives
// only as long as its neighbours need it.
#pragma once

#include <array>
#include <cstddef>

#include "kernel/frame/buffer.hpp"
#include "kernel/npb/mg_grid.hpp"

namespace fabricbench::npb::multigrid {

/// A 27-point operator by distance: centre, faces, edges, corners.
using Stencil = std::array<double, 4>;

/// The discrete Laplacian A, with nothing on the faces.
inline constexpr Stencil laplacian{-8.0 / 3, 0, 1.0 / 6, 1.0 / 12};

/// Where a rank's part of a coarser field begins in the field that is given: nowhere else than at 0, but for a field
/// that every rank has whole.
using Offset = std::array<std::ptrdiff_t, 3>;

/// The sweeps with their lines and planes of scratch memory.
class Sweeps {
 public:
  /// For fields of up to as many points in x and planes in z.
  Sweeps(std::ptrdiff_t points, std::ptrdiff_t planes, const Stencil& smoother);

  /// The sum of squares of v - A u over the rank's own points. Needs a ghost of u.
  double squared_residual(const Field& u, const Field& v);

  /// coarse = P (v - A u); the sum of squares of v - A u into `squared` where it is given. Needs two ghosts of u, one
  /// of v.
  void restrict_residual(const Field& u, const Field& v, Field& coarse, double* squared = nullptr);

  /// coarse = P r. Needs a ghost of r.
  void restrict_field(const Field& r, Field& coarse);

  /// u = S r. Needs a ghost of r.
  void smooth(const Field& r, Field& u);

  /// With u' = u + Q z, or u' = Q z if not `added`: u = u' + S (v - A u'). Needs two ghosts of u and z, one of v;
  /// leaves no valid ghosts.
  void correct(Field& u, const Field& v, const Field& z, const Offset& z_offset, bool added);

  /// Of lines of scratch: enough for 1024 points, not a multiple of a page, and fixed, for want of registers.
  static constexpr std::ptrdiff_t scratch_stride = 1088;

 private:
  class Strip;

  double* scratch(std::ptrdiff_t line);
  void smooth_lines(const std::array<std::array<const double*, 4>, 3>& r, Field& u, std::ptrdiff_t j, std::ptrdiff_t k);

  static constexpr std::ptrdiff_t scratch_lines = 7;
  Stencil smoother_;
  std::ptrdiff_t stride_;  // of lines of scratch
  std::ptrdiff_t strip_lines_ = 16;
  Buffer<double> lines_;         // what a line needs while it is computed
  Buffer<double> strip_planes_;  // three planes of a strip's residual
  Buffer<double> carried_;  // the residual on the last two lines of the strip before and of this one, on all planes
};

}  // namespace fabricbench::npb::multigrid
