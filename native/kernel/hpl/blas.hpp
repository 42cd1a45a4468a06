// The two operations that HPL takes from a BLAS, from whichever there is: the library is loaded when the program runs,
// so that a build needs none and a site's own is used without building again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fabricbench::hpl {

/// Names a library in place of the one that is found, as the option --blas does.
inline constexpr const char* blas_variable = "FABRICBENCH_BLAS";

/// All matrices are stored by columns, `ld` numbers apart.
class Blas {
 public:
  /// Fortran's calling convention, which every BLAS has. Whole numbers are 64 bits wide here: a little-endian library
  /// of 32 bits reads the lower half. The last arguments are the lengths of the words.
  using Gemm = void (*)(const char*, const char*, const std::int64_t*, const std::int64_t*, const std::int64_t*,
                        const double*, const double*, const std::int64_t*, const double*, const std::int64_t*,
                        const double*, double*, const std::int64_t*, std::size_t, std::size_t);
  using Trsm = void (*)(const char*, const char*, const char*, const char*, const std::int64_t*, const std::int64_t*,
                        const double*, const double*, const std::int64_t*, double*, const std::int64_t*, std::size_t,
                        std::size_t, std::size_t, std::size_t);

  Blas(Gemm gemm, Trsm trsm, std::string name) : gemm_(gemm), trsm_(trsm), name_(std::move(name)) {}

  /// The library `asked` for, a path or a name that the loader knows; where that is empty FABRICBENCH_BLAS, the wheel
  /// scipy-openblas32 beside this program, or a library of the system. It gets `threads` threads where it can be told.
  /// Throws a Failure that says what was tried.
  static Blas load(const std::string& asked, int threads);

  /// c := c - a b, with a of m x k.
  void subtract_product(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t lda,
                        const double* b, std::int64_t ldb, double* c, std::int64_t ldc) const {
    if (m <= 0 || n <= 0 || k <= 0) return;
    const double minus_one = -1;
    const double one = 1;
    gemm_("N", "N", &m, &n, &k, &minus_one, a, &lda, b, &ldb, &one, c, &ldc, 1, 1);
  }

  /// b := l^-1 b, with l of m x m: its lower triangle, and ones on the diagonal.
  void solve_unit_lower(std::int64_t m, std::int64_t n, const double* l, std::int64_t ldl, double* b,
                        std::int64_t ldb) const {
    if (m <= 0 || n <= 0) return;
    const double one = 1;
    trsm_("L", "L", "N", "U", &m, &n, &one, l, &ldl, b, &ldb, 1, 1, 1, 1);
  }

  /// What the library calls itself, else its file; with its threads.
  const std::string& name() const { return name_; }

 private:
  Gemm gemm_;
  Trsm trsm_;
  std::string name_;
};

}  // namespace fabricbench::hpl
