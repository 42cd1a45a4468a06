// Circular convolution of a field in three dimensions with a kernel, by Fourier transforms over all ranks.
//
// The ranks form a grid of `z_ranks` x `x_ranks`; x_ranks is 1 for slabs. A rank holds in turn
//   rows:    a share of z (by its place along z_ranks), a share of y (along x_ranks), all x
//   planes:  the same share of z, all y, a share of x (along x_ranks)
//   columns: all z, a share of y (along z_ranks), the same share of x
// so that each dimension is transformed where it is whole. Between planes and columns lies an all-to-all among z_ranks,
// between rows and planes one among x_ranks, or nothing where that is 1: rows are planes then.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernel/fft_convolution/redistribution.hpp"
#include "kernel/simd/fft.hpp"

namespace fabricbench::fft_convolution {

using Size = std::array<std::size_t, 3>;  // along x, y and z

enum class Decomposition { slab, pencil };
inline constexpr std::array<std::string_view, 2> decomposition_names{"slab", "pencil"};

/// z_ranks and x_ranks: slabs, or the most square grid. Nothing where a rank would have no points.
std::optional<std::array<std::size_t, 2>> rank_grid(const Size& size, std::size_t ranks, Decomposition decomposition);

class Convolution {
 public:
  /// Of sizes that have a transform, on a grid of as many ranks as the communicator has. Collective. Throws
  /// std::bad_alloc or Failure.
  Convolution(MPI_Comm communicator, const Size& size, const std::array<std::size_t, 2>& grid);
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;
  ~Convolution();

  const Size& size() const { return size_; }
  /// The rows that this rank has, and their points.
  const Region& region() const { return rows_; }
  double* field() { return row_points_.data(); }
  const double* field() const { return row_points_.data(); }

  /// Take what the field has as the kernel: its transform is kept, over the number of points. Collective.
  void take_kernel();
  /// The field becomes its convolution with the kernel. Collective. Allocates nothing.
  void convolve();

  /// Of the largest message from this rank to another.
  std::size_t message_bytes() const;

 private:
  void to_columns();
  template <bool inverse>
  void transform_rows();
  template <bool inverse>
  void transform_planes();
  template <class Visit>
  void for_each_column_group(Visit&& visit);

  Size size_;
  std::array<simd::Fft, 3> fft_;
  MPI_Comm along_z_ = MPI_COMM_NULL;
  MPI_Comm along_x_ = MPI_COMM_NULL;
  Region rows_;
  Region planes_;
  Region columns_;
  std::optional<Redistribution> rows_and_planes_;     // where they differ
  std::optional<Redistribution> planes_and_columns_;  // likewise
  kernel::Buffer<double> row_points_;
  kernel::Buffer<double> plane_points_;
  kernel::Buffer<double> column_points_;
  double* planes_at_ = nullptr;
  double* columns_at_ = nullptr;
  kernel::Buffer<double> kernel_;   // its transform, of the columns
  kernel::Buffer<double> lines_;    // as many lines as there are lanes
  kernel::Buffer<double> scratch_;  // of their transforms
};

/// The initial field, and the kernel, of a rank's own points.
void fill_field(Convolution& convolution);
void fill_kernel(Convolution& convolution);

/// The field that is convolved: complex integers that look random, of -128 to 127.
std::array<double, 2> initial_value(const Size& size, const Size& point);

/// Where the kernel has its two values of 1/2.
std::array<Size, 2> kernel_points(const Size& size);

/// The largest distance of a rank's part from the initial field convolved so many times, as its sum says: of n
/// convolutions the kernel is at (n - k) a + k b with weight C(n, k) / 2^n, for its points a and b.
double error_of(const Size& size, const Region& region, const double* field, int convolutions);

/// What that must stay below: transforms of N numbers lose some bits of the last one in each of their log2 N passes.
double most_error(const Size& size, int convolutions);

}  // namespace fabricbench::fft_convolution
