// A field of complex numbers in three dimensions that changes hands: each rank has one region of it before and another
// one after, and sends every other rank what both have in common.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <vector>

#include "kernel/frame/buffer.hpp"
#include "kernel/frame/share.hpp"

namespace fabricbench::fft_convolution {

using kernel::Share;

/// Points along x, y and z. Complex numbers, real part first, lie in memory with x fastest, then y.
struct Region {
  std::array<Share, 3> shares;

  std::size_t count(std::size_t dimension) const { return shares[dimension].count(); }
  std::size_t points() const { return count(0) * count(1) * count(2); }
  /// Where a point lies, by its place in the whole field.
  std::size_t at(std::size_t x, std::size_t y, std::size_t z) const {
    return ((z - shares[2].begin) * count(1) + y - shares[1].begin) * count(0) + x - shares[0].begin;
  }
  /// What both have.
  Region common(const Region& other) const;
};

class Redistribution {
 public:
  /// The regions of all ranks of the communicator, which must outlive this. Throws Failure where MPI cannot count that
  /// many points.
  Redistribution(MPI_Comm communicator, std::vector<Region> from, std::vector<Region> to);

  /// Collective, as is the way back. Allocates nothing.
  void forth(const double* from, double* to) { exchange(of_from_, from, of_to_, to); }
  void back(const double* to, double* from) { exchange(of_to_, to, of_from_, from); }

  /// Of the largest message from one rank to another, in either direction.
  std::size_t message_bytes() const;

 private:
  /// One end of an exchange: by rank, what it sends when it is where points are, and receives when it is not.
  struct End {
    Region own;
    std::vector<Region> parts;
    std::vector<int> counts;
    std::vector<int> firsts;
    bool are_equal = false;
  };
  static End end_of(const Region& own, const std::vector<Region>& others);
  void exchange(const End& source, const double* from, const End& target, double* to);

  MPI_Comm communicator_;
  int rank_ = 0;
  End of_from_;
  End of_to_;
  kernel::Buffer<double> outgoing_;
  kernel::Buffer<double> incoming_;
};

}  // namespace fabricbench::fft_convolution
