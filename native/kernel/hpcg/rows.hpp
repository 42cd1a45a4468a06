// The matrix as its rows, each entry with the place of its column, and plain loops over them in the order of the rows:
// the reference that other ways are measured and checked by.
#pragma once

#include <cstdint>
#include <functional>

#include "kernel/frame/buffer.hpp"
#include "kernel/hpcg/geometry.hpp"

namespace fabricbench::hpcg {

class Rows {
 public:
  /// Throws std::bad_alloc.
  explicit Rows(const Geometry& geometry);

  /// y = A x. The layer around x is up to date here and below; y's is not touched.
  void multiply(const double* x, double* y) const;
  /// x after a forward and a backward sweep of Gauss-Seidel for A x = r; what other ranks have does not change
  /// meanwhile.
  void smooth(const double* r, double* x) const;
  /// The same where x is zero.
  void smooth_zero(const double* r, double* x) const { smooth(r, x); }
  /// At every other point in each dimension of `coarse`, r - A x.
  void restrict_residual(const double* r, const double* x, const Box& coarse, double* out);
  void set_diagonal(const std::function<double(int i, int j, int k)>& of);
  double dot(const double* a, const double* b) const;

 private:
  Box box_;
  kernel::Buffer<double> values_;  // first: what is too much for the machine is refused here, before any is touched
  kernel::Buffer<std::int64_t> begins_;  // of rows among the entries, and the end of the last
  kernel::Buffer<std::int64_t> diagonals_;
  kernel::Buffer<std::int32_t> columns_;
  kernel::Buffer<std::int32_t> places_;  // of rows in a vector
  kernel::Buffer<double> product_;
};

}  // namespace fabricbench::hpcg
