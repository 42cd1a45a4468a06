#include "kernel/elliptic/domain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernel/frame/kernel.hpp"
#include "kernel/frame/scramble.hpp"

namespace fabricbench::elliptic {
namespace {

constexpr int tag = 1;

}  // namespace

double exact_solution(const Size& size, std::ptrdiff_t x, std::ptrdiff_t y, std::ptrdiff_t z) {
  const std::array<std::ptrdiff_t, 3> point{x, y, z};
  std::size_t number = 0;
  for (std::size_t dimension = 3; dimension-- > 0;) {
    const auto place = static_cast<std::size_t>(point[dimension]);  // below 0 it is larger than any size
    if (place >= size[dimension]) return 0;
    number = number * size[dimension] + place;
  }
  return kernel::small_integer(kernel::scramble(number + 1));
}

std::optional<Size> rank_grid(const Size& size, std::size_t ranks) {
  std::optional<Size> best;
  double least = std::numeric_limits<double>::infinity();
  const auto cuts = [&](std::size_t parts, std::size_t along, std::size_t across) {
    return static_cast<double>(parts - 1) * static_cast<double>(along) * static_cast<double>(across);
  };
  for (std::size_t z = 1; z <= std::min(ranks, size[2]); ++z) {
    if (ranks % z != 0) continue;
    for (std::size_t y = 1; y <= std::min(ranks / z, size[1]); ++y) {
      const std::size_t x = ranks / z / y;
      if (ranks / z % y != 0 || x > size[0]) continue;
      const double area = cuts(x, size[1], size[2]) + cuts(y, size[0], size[2]) + cuts(z, size[0], size[1]);
      if (area >= least) continue;
      least = area;
      best = {x, y, z};
    }
  }
  return best;
}

Domain::Domain(MPI_Comm communicator, const Size& size, const Size& grid) : communicator_(communicator), size_(size) {
  int number = 0;
  MPI_Comm_rank(communicator, &number);
  const auto rank = static_cast<std::size_t>(number);
  const Size place{rank % grid[0], rank / grid[0] % grid[1], rank / grid[0] / grid[1]};
  for (std::size_t dimension = 0; dimension < 3; ++dimension)
    shares_[dimension] = kernel::share(size[dimension], grid[dimension], place[dimension]);
  const std::size_t numbers = plane() * (shares_[2].count() + 2);
  for (auto* buffer : {&approximation_, &next_, &right_side_}) *buffer = kernel::Buffer<double>(numbers);
  meet_neighbours(grid, place);
  fill_right_side();
}

void Domain::meet_neighbours(const Size& grid, const Size& place) {
  std::size_t points = 0;
  for (std::size_t dimension = 0; dimension < 3; ++dimension) {
    const std::size_t own = shares_[dimension].count();
    for (const bool is_behind : {false, true}) {
      if (is_behind ? place[dimension] + 1 == grid[dimension] : place[dimension] == 0) continue;
      Size there = place;
      there[dimension] += is_behind ? 1 : static_cast<std::size_t>(-1);
      // Places in memory, where the layer around is the first and the last.
      Neighbour neighbour{.rank = static_cast<int>((there[2] * grid[1] + there[1]) * grid[0] + there[0]),
                          .inner = {1, 1, 1},
                          .outer = {1, 1, 1},
                          .count = {shares_[0].count(), shares_[1].count(), shares_[2].count()},
                          .begin = points};
      neighbour.count[dimension] = 1;
      neighbour.inner[dimension] = is_behind ? own : 1;
      neighbour.outer[dimension] = is_behind ? own + 1 : 0;
      points += neighbour.points();
      neighbours_.push_back(neighbour);
    }
  }
  requests_.resize(2 * neighbours_.size());
  outgoing_ = kernel::Buffer<double>(points);
  incoming_ = kernel::Buffer<double>(points);
}

/// Call `of(begin, y, z)` with where each line of the box begins, and which of the whole grid it is.
template <class Of>
void Domain::for_each_line(Of&& of) const {
  for (std::size_t k = 0; k < shares_[2].count(); ++k) {
    for (std::size_t j = 0; j < shares_[1].count(); ++j) of(at(0, j, k), shares_[1].begin + j, shares_[2].begin + k);
  }
}

/// Call `of(begin)` with where each line of a layer begins, of which `first` is the first point.
template <class Of>
void Domain::for_each_row(const Neighbour& neighbour, const Size& first, Of&& of) const {
  for (std::size_t k = 0; k < neighbour.count[2]; ++k) {
    for (std::size_t j = 0; j < neighbour.count[1]; ++j)
      of((first[2] + k) * plane() + (first[1] + j) * line() + first[0]);
  }
}

void Domain::fill_right_side() {
  for_each_line([&](std::size_t begin, std::size_t row, std::size_t layer) {
    const auto y = static_cast<std::ptrdiff_t>(row);
    const auto z = static_cast<std::ptrdiff_t>(layer);
    const auto solution = [&](std::ptrdiff_t x, std::ptrdiff_t dy, std::ptrdiff_t dz) {
      return exact_solution(size_, x, y + dy, z + dz);
    };
    for (std::size_t i = 0; i < shares_[0].count(); ++i) {
      const auto x = static_cast<std::ptrdiff_t>(shares_[0].begin + i);
      right_side_[begin + i] = diagonal * solution(x, 0, 0) - solution(x - 1, 0, 0) - solution(x + 1, 0, 0) -
                               solution(x, -1, 0) - solution(x, 1, 0) - solution(x, 0, -1) - solution(x, 0, 1);
    }
  });
}

void Domain::reset() {
  for (auto* buffer : {&approximation_, &next_}) std::fill_n(buffer->data(), buffer->size(), 0.0);
}

void Domain::exchange() {
  MPI_Request* request = requests_.data();
  for (const Neighbour& from : neighbours_) {
    MPI_Irecv(&incoming_[from.begin], static_cast<int>(from.points()), MPI_DOUBLE, from.rank, tag, communicator_,
              request++);
  }
  for (const Neighbour& to : neighbours_) {
    double* out = &outgoing_[to.begin];
    for_each_row(to, to.inner,
                 [&](std::size_t row) { out = std::copy_n(approximation_.data() + row, to.count[0], out); });
    MPI_Isend(&outgoing_[to.begin], static_cast<int>(to.points()), MPI_DOUBLE, to.rank, tag, communicator_, request++);
  }
  MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  for (const Neighbour& from : neighbours_) {
    const double* in = &incoming_[from.begin];
    // Sweeps go from one array into the other and back, and find the layer in both.
    for_each_row(from, from.outer, [&](std::size_t row) {
      for (auto* buffer : {&approximation_, &next_}) std::copy_n(in, from.count[0], buffer->data() + row);
      in += from.count[0];
    });
  }
}

void Domain::sweep(const double* right_side) {
  constexpr double inverse = 1 / diagonal;
  const std::size_t points = shares_[0].count();
  const std::size_t next_line = line();
  const std::size_t next_plane = plane();
  for_each_line([&](std::size_t begin, std::size_t, std::size_t) {
    const double* const u = approximation_.data() + begin;
    const double* const before = u - next_line;
    const double* const behind = u + next_line;
    const double* const below = u - next_plane;
    const double* const above = u + next_plane;
    const double* const f = right_side + begin;
    double* const __restrict to = next_.data() + begin;
    for (std::size_t i = 0; i < points; ++i) {
      const double* const here = u + i;
      to[i] = inverse * (f[i] + (here[-1] + here[1]) + (before[i] + behind[i]) + (below[i] + above[i]));
    }
  });
  std::swap(approximation_, next_);
}

double Domain::error() const {
  double error = 0;
  for_each_line([&](std::size_t begin, std::size_t y, std::size_t z) {
    for (std::size_t i = 0; i < shares_[0].count(); ++i) {
      const auto x = static_cast<std::ptrdiff_t>(shares_[0].begin + i);
      const double expected = exact_solution(size_, x, static_cast<std::ptrdiff_t>(y), static_cast<std::ptrdiff_t>(z));
      const double found = std::abs(approximation_[begin + i] - expected);
      error = std::isfinite(found) ? std::max(error, found) : std::numeric_limits<double>::infinity();
    }
  });
  return error;
}

double Domain::contraction(int sweeps) {
  // Ones where the box and its neighbours are; around the grid stays 0.
  reset();
  for (auto* buffer : {&approximation_, &next_}) {
    for_each_line([&](std::size_t begin, std::size_t, std::size_t) {
      std::fill_n(buffer->data() + begin, shares_[0].count(), 1.0);
    });
    for (const Neighbour& neighbour : neighbours_) {
      for_each_row(neighbour, neighbour.outer,
                   [&](std::size_t row) { std::fill_n(buffer->data() + row, neighbour.count[0], 1.0); });
    }
  }
  const kernel::Buffer<double> nothing(right_side_.size());
  for (int i = 0; i < sweeps; ++i) sweep(nothing.data());
  double most = 0;
  for_each_line([&](std::size_t begin, std::size_t, std::size_t) {
    const double* const line = approximation_.data() + begin;
    most = std::max(most, *std::max_element(line, line + shares_[0].count()));
  });
  return most;
}

std::size_t Domain::message_bytes() const {
  std::size_t most = 0;
  for (const Neighbour& neighbour : neighbours_) most = std::max(most, neighbour.points());
  return most * sizeof(double);
}

std::uint64_t Domain::fingerprint() const {
  std::uint64_t hash = kernel::fingerprint_start;
  for_each_line([&](std::size_t begin, std::size_t, std::size_t) {
    hash = kernel::fingerprint(approximation_.data() + begin, shares_[0].count() * sizeof(double), hash);
  });
  return hash;
}

}  // namespace fabricbench::elliptic
