#include "kernel/npb/lu_tile.hpp"

namespace fabricbench::npb::ssor {
namespace {

constexpr int least_tile = 2;   // two ghost layers come from the next tile
constexpr int least_strip = 2;  // and from the next lane

struct Share {
  int begin;
  int count;
};

// Deal the interior points of an edge: the first parts get one more where it does not come out even.
Share share(int points, int parts, int part) {
  const int inner = points - 2;
  const int least = inner / parts;
  const int larger = inner % parts;
  return {1 + part * least + std::min(part, larger), least + (part < larger ? 1 : 0)};
}

}  // namespace

std::optional<ProcessGrid> process_grid(int points, int ranks) {
  for (int py = ranks; py >= 1; --py) {
    const int px = ranks / py;
    if (px * py == ranks && px >= py && (points - 2) / px >= least_tile) return ProcessGrid{px, py};
  }
  return std::nullopt;
}

Tile::Tile(MPI_Comm communicator_, int grid_points, ProcessGrid grid)
    : communicator(communicator_), points(grid_points) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  const int x = rank % grid.px;
  const int y = rank / grid.px;
  west = x > 0 ? rank - 1 : MPI_PROC_NULL;
  east = x < grid.px - 1 ? rank + 1 : MPI_PROC_NULL;
  south = y > 0 ? rank - grid.px : MPI_PROC_NULL;
  north = y < grid.py - 1 ? rank + grid.px : MPI_PROC_NULL;
  x_begin = share(points, grid.px, x).begin;
  nx = share(points, grid.px, x).count;
  y_begin = share(points, grid.py, y).begin;
  ny = share(points, grid.py, y).count;
  strip = std::max(least_strip, (ny + lane_count - 1) / lane_count);
  strips = (ny + strip - 1) / strip;
}

LaneMask Tile::mask(int slot, int row) const {
  LaneMask out{};
  for (int lane = 0; lane < lane_count; ++lane) {
    out[lane] = row < strip && lane * strip + row < ny && has_plane(slot - lane) ? -1 : 0;
  }
  return out;
}

Field::Field(const Tile& tile, int ghosts)
    : tile_(tile),
      ghosts_(ghosts),
      rows_(tile.strip + 2 * ghosts),
      columns_(tile.nx + 2 * ghosts),
      memory_(std::size_t((tile.points + lane_count + below) * rows_ * columns_) * sizeof(Points) / sizeof(double)),
      points_(reinterpret_cast<Points*>(memory_.data())) {}

}  // namespace fabricbench::npb::ssor
