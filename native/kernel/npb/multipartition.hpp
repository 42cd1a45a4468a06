// The multi-partition decomposition of BT and SP on q x q ranks: the grid is cut into q^3 cells and each rank owns q of
// them, on a diagonal, so that every slab of cells, in each of the three directions, holds one cell of each rank. While
// a sweep along lines goes from slab to slab all ranks work, and the neighbours of a rank along a direction are always
// the same two. NAS-95-020, section on BT and SP; after Naik and Bruno and Cappello.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include "kernel/npb/flow_field.hpp"

namespace fabricbench::npb::navier_stokes {

/// Why a grid with this many points along each edge cannot be cut for so many ranks, with the counts that can.
std::optional<std::string> multipartition_refusal(int points, int ranks);

class Multipartition {
 public:
  Multipartition(MPI_Comm communicator, int points);

  MPI_Comm communicator() const { return communicator_; }
  int slabs() const { return slabs_; }
  /// This rank's cells; all ranks agree on nothing but their number.
  const std::vector<Box>& cells() const { return cells_; }
  /// Which of them lies in a slab along direction d.
  int cell_in_slab(int d, int slab) const;
  /// The rank that owns the cells after, or before, this rank's along d.
  int successor(int d) const { return neighbour(d, 1); }
  int predecessor(int d) const { return neighbour(d, -1); }

 private:
  int neighbour(int d, int step) const;

  MPI_Comm communicator_;
  int slabs_;
  int row_;
  int column_;
  std::vector<Box> cells_;
};

/// Fills the ghost layers of all cells of this rank: one message to each of the six neighbours, with the faces of all
/// cells that have a neighbour there.
class FaceExchange {
 public:
  explicit FaceExchange(const Multipartition& partition);
  /// Collective. One field for each cell.
  void run(std::vector<Field>& fields);

 private:
  struct Direction {
    std::vector<double> to_successor, to_predecessor, from_successor, from_predecessor;
  };
  const Multipartition* partition_;
  std::array<Direction, directions> along_;
};

}  // namespace fabricbench::npb::navier_stokes
