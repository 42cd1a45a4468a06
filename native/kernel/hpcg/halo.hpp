// The copies of the neighbours' outermost points around a box, brought up to date: faces, edges and corners, a message
// to each of up to 26 neighbours.
#pragma once

#include <mpi.h>

#include <vector>

#include "kernel/frame/buffer.hpp"
#include "kernel/hpcg/geometry.hpp"

namespace fabricbench::hpcg {

class Halo {
 public:
  explicit Halo(const Geometry& geometry);

  /// Collective among neighbours.
  void exchange(double* x);

  /// Numbers that this rank sends in one exchange.
  std::size_t numbers() const { return outgoing_.size(); }
  std::size_t neighbours() const { return neighbours_.size(); }

 private:
  /// Points from `first` of so many along each dimension.
  struct Part {
    Triple first{};
    Triple points{};
  };
  struct Neighbour {
    int rank = 0;
    Part inner;  // ours, of which it has copies
    Part outer;  // its own, of which we have copies
    std::size_t begin = 0;
    int numbers = 0;
  };

  MPI_Comm communicator_;
  Box box_;
  std::vector<Neighbour> neighbours_;
  std::vector<MPI_Request> requests_;
  kernel::Buffer<double> outgoing_;
  kernel::Buffer<double> incoming_;
};

}  // namespace fabricbench::hpcg
