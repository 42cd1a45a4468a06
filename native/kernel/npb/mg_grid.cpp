#include "kernel/npb/mg_grid.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace fabricbench::npb::multigrid {

namespace {

/// A part of a field, ends excluded.
struct Box {
  std::array<std::ptrdiff_t, 3> begin;
  std::array<std::ptrdiff_t, 3> end;
  std::ptrdiff_t volume() const { return (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]); }
};

/// Call `visit` with the first point of each line of the box, and how many there are.
template <class AnyField, class Visit>
void for_each_line(AnyField& field, const Box& box, Visit visit) {
  const std::ptrdiff_t length = box.end[0] - box.begin[0];
  for (std::ptrdiff_t k = box.begin[2]; k < box.end[2]; ++k) {
    for (std::ptrdiff_t j = box.begin[1]; j < box.end[1]; ++j) visit(field.line(j, k) + box.begin[0], length);
  }
}

double* pack(const Field& field, const Box& box, double* packed) {
  for_each_line(field, box,
                [&packed](const double* line, std::ptrdiff_t length) { packed = std::copy_n(line, length, packed); });
  return packed;
}

const double* unpack(const double* packed, Field& field, const Box& box) {
  for_each_line(field, box, [&packed](double* line, std::ptrdiff_t length) {
    std::copy_n(packed, length, line);
    packed += length;
  });
  return packed;
}

Box own_points(const Field& field) { return {{0, 0, 0}, {field.size(0), field.size(1), field.size(2)}}; }

int to_int(std::ptrdiff_t count) { return static_cast<int>(count); }

/// The two layers to send and the two to receive, low side first.
struct Layers {
  std::array<Box, 2> own;
  std::array<Box, 2> ghost;
};

/// Dimensions before this one are taken with their ghosts, which are filled by now.
Layers layers(const Field& field, std::size_t dimension, std::ptrdiff_t depth) {
  Box whole = own_points(field);
  for (std::size_t earlier = 0; earlier < dimension; ++earlier) {
    whole.begin[earlier] -= depth;
    whole.end[earlier] += depth;
  }
  const auto slice = [&](std::ptrdiff_t begin) {
    Box box = whole;
    box.begin[dimension] = begin;
    box.end[dimension] = begin + depth;
    return box;
  };
  const std::ptrdiff_t size = field.size(dimension);
  return {{slice(0), slice(size - depth)}, {slice(-depth), slice(size)}};
}

/// Send to both neighbours, receive from both. What goes down arrives as the high ghosts of the rank below.
void exchange_with_neighbours(const Decomposition& decomposition, std::size_t dimension,
                              const std::array<const double*, 2>& sent, const std::array<double*, 2>& received,
                              std::ptrdiff_t count) {
  std::array<MPI_Request, 4> requests{};
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const int tag = to_int(static_cast<std::ptrdiff_t>(side));
    MPI_Irecv(received[1 - side], to_int(count), MPI_DOUBLE, decomposition.neighbour(dimension, 1 - side), tag,
              decomposition.communicator(), &requests[side]);
  }
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const int tag = to_int(static_cast<std::ptrdiff_t>(side));
    MPI_Isend(sent[side], to_int(count), MPI_DOUBLE, decomposition.neighbour(dimension, side), tag,
              decomposition.communicator(), &requests[2 + side]);
  }
  MPI_Waitall(to_int(std::ssize(requests)), requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace

ProcessGrid process_grid(int ranks) {
  ProcessGrid best{1, 1, ranks};
  auto best_cost = std::pair{std::numeric_limits<int>::max(), 0};
  for (int x = 1; x <= ranks; ++x) {
    if (ranks % x != 0) continue;
    for (int y = 1; y <= ranks / x; ++y) {
      if (ranks / x % y != 0) continue;
      const ProcessGrid grid{x, y, ranks / x / y};
      int faces = 0;  // of one block, in units of n^2 / ranks
      for (const int processes : grid) faces += processes > 1 ? processes : 0;
      // A tie is resolved for fewer cuts across x, then for blocks nearer to cubes.
      const auto cost = std::pair{faces, x * ranks + grid[2]};
      if (cost < best_cost) std::tie(best_cost, best) = std::pair{cost, grid};
    }
  }
  return best;
}

int base_level(const ProcessGrid& grid, int finest) {
  constexpr unsigned smallest = 8;  // points per dimension that are not worth a message
  constexpr unsigned uneven_share = 4;
  unsigned points = smallest;
  for (const int processes : grid) {
    const auto count = static_cast<unsigned>(processes);
    points = std::max(points, std::bit_ceil(std::has_single_bit(count) ? count : uneven_share * count));
  }
  return std::min(std::countr_zero(points), finest - 1);
}

Decomposition::Decomposition(MPI_Comm communicator, const ProcessGrid& grid, int base)
    : communicator_(communicator), grid_(grid), coordinates_{}, base_(base) {
  int rank = 0;
  MPI_Comm_rank(communicator_, &rank);
  *this = of(rank);
}

Decomposition Decomposition::alone() { return {MPI_COMM_SELF, {1, 1, 1}, 0}; }

Decomposition Decomposition::of(int rank) const {
  Decomposition other = *this;
  other.coordinates_ = {rank % grid_[0], rank / grid_[0] % grid_[1], rank / grid_[0] / grid_[1]};
  return other;
}

int Decomposition::neighbour(std::size_t dimension, std::size_t side) const {
  auto at = coordinates_;
  at[dimension] = (at[dimension] + (side == 0 ? grid_[dimension] - 1 : 1)) % grid_[dimension];
  return at[0] + grid_[0] * (at[1] + grid_[1] * at[2]);
}

Field::Field(const Decomposition& decomposition, int level) {
  for (std::size_t dimension = 0; dimension < 3; ++dimension) size_[dimension] = decomposition.count(level, dimension);
  constexpr std::ptrdiff_t step = lanes;
  line_stride_ = line_begin + (size_[0] + ghosts + step - 1) / step * step;
  plane_stride_ = line_stride_ * (size_[1] + 2 * ghosts);
  points_ = Buffer<double>(static_cast<std::size_t>(plane_stride_ * (size_[2] + 2 * ghosts)));
}

void Field::clear() { std::memset(points_.data(), 0, points_.size() * sizeof(double)); }

void GhostExchange::operator()(const Decomposition& decomposition, Field& field, std::ptrdiff_t depth) {
  for (std::size_t dimension = 0; dimension < 3; ++dimension) {
    if (!decomposition.divides(dimension)) {
      const auto [own, ghost] = layers(field, dimension, depth);
      const auto needed = static_cast<std::size_t>(own[0].volume());
      if (faces_.size() < needed) faces_ = Buffer<double>(needed);
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        pack(field, own[side], faces_.data());
        unpack(faces_.data(), field, ghost[1 - side]);
      }
    } else if (dimension == 2) {
      exchange_planes(decomposition, field, depth);
    } else {
      exchange_faces(decomposition, field, dimension, depth);
    }
  }
}

/// Whole planes lie together in memory: nothing to pack.
void GhostExchange::exchange_planes(const Decomposition& decomposition, Field& field, std::ptrdiff_t depth) {
  const auto [own, ghost] = layers(field, 2, depth);
  const auto first = [&field](const Box& box) { return field.line(box.begin[1], box.begin[2]) + box.begin[0]; };
  const Box& any = own[0];
  const std::ptrdiff_t count = (depth - 1) * field.plane_stride() +
                               (any.end[1] - any.begin[1] - 1) * field.line_stride() + any.end[0] - any.begin[0];
  exchange_with_neighbours(decomposition, 2, {first(own[0]), first(own[1])}, {first(ghost[0]), first(ghost[1])}, count);
}

void GhostExchange::exchange_faces(const Decomposition& decomposition, Field& field, std::size_t dimension,
                                   std::ptrdiff_t depth) {
  const auto [own, ghost] = layers(field, dimension, depth);
  const std::ptrdiff_t count = own[0].volume();
  const auto needed = static_cast<std::size_t>(4 * count);
  if (faces_.size() < needed) faces_ = Buffer<double>(needed);
  double* const faces = faces_.data();
  pack(field, own[1], pack(field, own[0], faces));
  exchange_with_neighbours(decomposition, dimension, {faces, faces + count}, {faces + 2 * count, faces + 3 * count},
                           count);
  unpack(unpack(faces + 2 * count, field, ghost[0]), field, ghost[1]);
}

void gather(const Decomposition& decomposition, const Field& own, Field& all) {
  const auto ranks = static_cast<std::size_t>(decomposition.ranks());
  const Box own_box = own_points(own);
  std::vector<Box> boxes(ranks);
  std::vector<int> counts(ranks);
  std::vector<int> places(ranks);
  int total = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto owner = decomposition.of(static_cast<int>(rank));
    for (std::size_t dimension = 0; dimension < 3; ++dimension) {
      boxes[rank].begin[dimension] = owner.offset(owner.base(), dimension);
      boxes[rank].end[dimension] = boxes[rank].begin[dimension] + owner.count(owner.base(), dimension);
    }
    counts[rank] = to_int(boxes[rank].volume());
    places[rank] = total;
    total += counts[rank];
  }
  std::vector<double> mine(static_cast<std::size_t>(own_box.volume()));
  std::vector<double> everybodys(static_cast<std::size_t>(total));
  pack(own, own_box, mine.data());
  MPI_Allgatherv(mine.data(), to_int(std::ssize(mine)), MPI_DOUBLE, everybodys.data(), counts.data(), places.data(),
                 MPI_DOUBLE, decomposition.communicator());
  const double* from = everybodys.data();
  for (const Box& box : boxes) from = unpack(from, all, box);
}

}  // namespace fabricbench::npb::multigrid
