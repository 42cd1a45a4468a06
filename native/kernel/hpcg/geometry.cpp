#include "kernel/hpcg/geometry.hpp"

#include <limits>

namespace fabricbench::hpcg {

Triple ranks_grid(int ranks) {
  Triple best{ranks, 1, 1};
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int z = 1; z <= ranks; ++z) {
    if (ranks % z != 0) continue;
    for (int y = z; y <= ranks / z; ++y) {
      const int x = ranks / z / y;
      if (ranks / z % y != 0 || x < y) continue;
      const std::int64_t surface = std::int64_t{x} * y + std::int64_t{y} * z + std::int64_t{x} * z;
      if (surface >= least) continue;
      least = surface;
      best = {x, y, z};
    }
  }
  return best;
}

Geometry::Geometry(MPI_Comm communicator, Triple points) : communicator_(communicator), box_{points} {
  int ranks = 1;
  int rank = 0;
  MPI_Comm_size(communicator, &ranks);
  MPI_Comm_rank(communicator, &rank);
  ranks_ = ranks_grid(ranks);
  place_ = {rank % ranks_[0], rank / ranks_[0] % ranks_[1], rank / ranks_[0] / ranks_[1]};
  for (std::size_t dimension = 0; dimension < 3; ++dimension)
    first_[dimension] = std::int64_t{place_[dimension]} * points[dimension];
}

std::int64_t Geometry::nonzeros() const {
  return (3 * all_points(0) - 2) * (3 * all_points(1) - 2) * (3 * all_points(2) - 2);
}

int Geometry::neighbour(const Triple& direction) const {
  Triple place = place_;
  for (std::size_t dimension = 0; dimension < 3; ++dimension) {
    place[dimension] += direction[dimension];
    if (place[dimension] < 0 || place[dimension] >= ranks_[dimension]) return MPI_PROC_NULL;
  }
  return (place[2] * ranks_[1] + place[1]) * ranks_[0] + place[0];
}

Geometry Geometry::coarser() const {
  Triple half = box_.points;
  for (int& points : half) points /= 2;
  return {communicator_, half};
}

}  // namespace fabricbench::hpcg
