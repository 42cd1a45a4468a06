#include "kernel/npb/ft_layout.hpp"

#include <algorithm>

namespace fabricbench::npb::fourier {

namespace {

/// What one rank of an all-to-all gives to or takes from each other, in units of an MPI type.
class Parts {
 public:
  void add(std::size_t count, std::size_t first) {
    counts_.push_back(static_cast<int>(count));
    firsts_.push_back(static_cast<int>(first));
  }
  const int* counts() const { return counts_.data(); }
  const int* firsts() const { return firsts_.data(); }
  bool are_all(int count) const { return std::ranges::count(counts_, count) == std::ssize(counts_); }

 private:
  std::vector<int> counts_;
  std::vector<int> firsts_;
};

/// All-to-all of blocks of so many doubles: counts in doubles would leave the range of an int in class D. Parts follow
/// each other without gaps. Equal ones, which all ranks see if one does, go by the collective that MPI libraries know
/// to schedule: what all send to all others at once may fill the buffers of a switch.
void exchange(const double* sent, const Parts& send, double* received, const Parts& receive, std::size_t block,
              MPI_Comm communicator) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(block), MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  const int count = *send.counts();
  if (send.are_all(count) && receive.are_all(count)) {
    MPI_Alltoall(sent, count, type, received, count, type, communicator);
  } else {
    MPI_Alltoallv(sent, send.counts(), send.firsts(), type, received, receive.counts(), receive.firsts(), type,
                  communicator);
  }
  MPI_Type_free(&type);
}

}  // namespace

std::optional<std::array<std::size_t, 2>> rank_grid(const std::array<std::size_t, 3>& size, std::size_t ranks) {
  constexpr std::size_t widest_chunk = 8;  // the same answer on every processor
  for (std::size_t z_ranks = std::min(ranks, std::min(size[1], size[2])); z_ranks > 0; --z_ranks) {
    const std::size_t x_ranks = ranks / z_ranks;
    if (x_ranks > std::min(size[0] / widest_chunk, size[1])) break;
    if (z_ranks * x_ranks == ranks) return {{z_ranks, x_ranks}};
  }
  return std::nullopt;
}

Layout::Layout(MPI_Comm communicator, const std::array<std::size_t, 3>& size) : size_(size), grid_{}, place_{} {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  grid_ = rank_grid(size, static_cast<std::size_t>(ranks)).value();
  place_ = {static_cast<std::size_t>(rank) / grid_[1], static_cast<std::size_t>(rank) % grid_[1]};
  MPI_Comm_split(communicator, static_cast<int>(place_[1]), rank, &along_z_);
  MPI_Comm_split(communicator, static_cast<int>(place_[0]), rank, &along_x_);

  // Lines of a power of two all fall on the same few places of a cache; one rank alone can afford a gap between them.
  const std::size_t gap = grid_[0] == 1 ? 1 : 0;
  line_size_ = (chunks().count() + gap) * complex_lanes_size;
  planes_ = Buffer<double>(z().count() * size_[1] * line_size_);
  if (grid_[0] > 1) columns_ = Buffer<double>(size_[2] * column_y().count() * line_size_);
  first_column_ = grid_[0] > 1 ? columns_.data() : planes_.data();
  if (has_rows()) {
    rows_ = Buffer<double>(z().count() * row_y().count() * size_[0] * 2);
    packed_rows_ = Buffer<double>(rows_.size());
    packed_planes_ = Buffer<double>(z().count() * size_[1] * chunks().count() * complex_lanes_size);
  }
  for (std::size_t owner = 0; owner < grid_[0]; ++owner) {
    const Share y = share(size_[1], grid_[0], owner);
    double* const block = planes_.data() + z().count() * y.begin * line_size_;
    for (std::size_t i = 0; i < y.count(); ++i) {
      plane_lines_.push_back(block + i * line_size_);
      plane_strides_.push_back(y.count() * line_size_);
    }
  }
}

Layout::~Layout() {
  MPI_Comm_free(&along_z_);
  MPI_Comm_free(&along_x_);
}

double* Layout::row(std::size_t y, std::size_t z) {
  if (!has_rows()) return plane_line(y, z);
  return rows_.data() + ((z - this->z().begin) * row_y().count() + y - row_y().begin) * size_[0] * 2;
}

void Layout::exchange_columns_and_planes(bool to_planes) {
  if (grid_[0] == 1) return;
  Parts of_columns;
  Parts of_planes;
  for (std::size_t other = 0; other < grid_[0]; ++other) {
    const Share other_y = share(size_[1], grid_[0], other);
    const Share other_z = share(size_[2], grid_[0], other);
    of_columns.add(column_y().count() * other_z.count(), column_y().count() * other_z.begin);
    of_planes.add(z().count() * other_y.count(), z().count() * other_y.begin);
  }
  if (to_planes) {
    exchange(columns_.data(), of_columns, planes_.data(), of_planes, line_size_, along_z_);
  } else {
    exchange(planes_.data(), of_planes, columns_.data(), of_columns, line_size_, along_z_);
  }
}

void Layout::exchange_planes_and_rows(bool to_rows) {
  if (!has_rows()) return;
  // Packed by who has the other end: planes as [y share][z][y][own chunk], rows as [chunk share][z][own y][chunk].
  const auto copy = [](bool pack, double*& packed, double* lines, std::size_t size) {
    if (pack) {
      std::copy_n(lines, size, packed);
    } else {
      std::copy_n(packed, size, lines);
    }
    packed += size;
  };
  const auto copy_planes = [&](bool pack, std::size_t other, double*& packed) {
    const Share y_share = share(size_[1], grid_[1], other);
    for (std::size_t k = z().begin; k < z().end; ++k) {
      for (std::size_t j = y_share.begin; j < y_share.end; ++j) {
        copy(pack, packed, plane_line(j, k), chunks().count() * complex_lanes_size);
      }
    }
  };
  const auto copy_rows = [&](bool pack, std::size_t other, double*& packed) {
    const Share x_share = share(size_[0] / lanes, grid_[1], other);
    for (std::size_t k = z().begin; k < z().end; ++k) {
      for (std::size_t j = row_y().begin; j < row_y().end; ++j) {
        copy(pack, packed, row(j, k) + x_share.begin * complex_lanes_size, x_share.count() * complex_lanes_size);
      }
    }
  };
  Parts of_planes;
  Parts of_rows;
  for (std::size_t other = 0; other < grid_[1]; ++other) {
    const Share y_share = share(size_[1], grid_[1], other);
    const Share x_share = share(size_[0] / lanes, grid_[1], other);
    of_planes.add(z().count() * y_share.count() * chunks().count(), z().count() * y_share.begin * chunks().count());
    of_rows.add(z().count() * row_y().count() * x_share.count(), z().count() * row_y().count() * x_share.begin);
  }
  double* planes = packed_planes_.data();
  double* rows = packed_rows_.data();
  if (to_rows) {
    for (std::size_t other = 0; other < grid_[1]; ++other) copy_planes(true, other, planes);
    exchange(packed_planes_.data(), of_planes, rows, of_rows, complex_lanes_size, along_x_);
    for (std::size_t other = 0; other < grid_[1]; ++other) copy_rows(false, other, rows);
  } else {
    for (std::size_t other = 0; other < grid_[1]; ++other) copy_rows(true, other, rows);
    exchange(packed_rows_.data(), of_rows, planes, of_planes, complex_lanes_size, along_x_);
    for (std::size_t other = 0; other < grid_[1]; ++other) copy_planes(false, other, planes);
  }
}

void Layout::rows_to_planes() { exchange_planes_and_rows(false); }
void Layout::planes_to_rows() { exchange_planes_and_rows(true); }
void Layout::planes_to_columns() { exchange_columns_and_planes(false); }
void Layout::columns_to_planes() { exchange_columns_and_planes(true); }

}  // namespace fabricbench::npb::fourier
