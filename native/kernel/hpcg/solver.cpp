#include "kernel/hpcg/solver.hpp"

#include "kernel/frame/scramble.hpp"

namespace fabricbench::hpcg {

double official_operations(const Geometry& finest, int sets, int iterations) {
  const double all_iterations = static_cast<double>(sets) * iterations;
  const auto rows = static_cast<double>(finest.all_points());
  // A dot product and a sum of vectors have 2 operations a row, a product with the matrix 2 a nonzero, a symmetric
  // sweep 4.
  double operations = 2 * (3 * all_iterations + sets) * 2 * rows;
  operations += (all_iterations + sets) * 2 * static_cast<double>(finest.nonzeros());
  Geometry geometry = finest;
  for (int level = 0; level < levels; ++level) {
    const bool is_coarsest = level + 1 == levels;
    operations += all_iterations * (is_coarsest ? 4 : 4 + 2 + 4) * static_cast<double>(geometry.nonzeros());
    geometry = geometry.coarser();
  }
  return operations;
}

double random_number(std::int64_t row, std::uint64_t seed) {
  const std::uint64_t x =
      kernel::scramble((static_cast<std::uint64_t>(row) + 1) * 0x9e3779b97f4a7c15U + seed * 0xd1b54a32d192ed03U);
  return 1 + static_cast<double>(x >> 11U) * 0x1p-53;
}

}  // namespace fabricbench::hpcg
