#include "kernel/fft_convolution/convolution.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/frame/scramble.hpp"

namespace fabricbench::fft_convolution {
namespace {

using simd::complex_lanes_size;
using simd::lanes;
using simd::Lanes;

constexpr std::size_t point_size = 2;      // doubles
constexpr double weight = 0.5;             // of each of the kernel's points
constexpr double most_amplitude = 182;     // of the field: 128 sqrt 2
constexpr double least_weight = 0x1p-100;  // of what is summed up: less is nothing beside rounding

/// Lines of a field, one for each lane: where the first one begins, and the doubles from a point to the next along a
/// line and to the same one of the next line. There may be fewer lines than lanes.
struct Group {
  double* first;
  std::size_t points;
  std::size_t stride;
  std::size_t apart;
  std::size_t count;

  bool is_whole() const { return count == lanes; }
  bool are_side_by_side() const { return apart == point_size && is_whole(); }
  double* line(std::size_t lane) const { return first + std::min(lane, count - 1) * apart; }
};

std::array<double*, lanes> lines_of(const Group& group, std::size_t from) {
  std::array<double*, lanes> lines{};
  for (std::size_t lane = 0; lane < lanes; ++lane) lines[lane] = group.line(lane) + from * group.stride;
  return lines;
}

/// Points of a group whose lines are whole in memory that are loaded at once.
constexpr std::size_t points_at_once = lanes / point_size;

void gather(const Group& group, double* to) {
  if (group.are_side_by_side()) {
    for (std::size_t i = 0; i < group.points; ++i) {
      const double* const from = group.first + i * group.stride;
      const auto parts = simd::deinterleave(simd::load(from), simd::load(from + lanes));
      simd::store(to + i * complex_lanes_size, parts[0]);
      simd::store(to + i * complex_lanes_size + lanes, parts[1]);
    }
    return;
  }
  std::size_t i = 0;
  if (group.stride == point_size) {
    for (; i + points_at_once <= group.points; i += points_at_once) {
      const auto block = simd::load_transposed(lines_of(group, i), 0);
      for (std::size_t part = 0; part < lanes; ++part)
        simd::store(to + i * complex_lanes_size + part * lanes, block[part]);
    }
  }
  for (; i < group.points; ++i) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double* const from = group.line(lane) + i * group.stride;
      to[i * complex_lanes_size + lane] = from[0];
      to[i * complex_lanes_size + lanes + lane] = from[1];
    }
  }
}

void scatter(const double* from, const Group& group) {
  if (group.are_side_by_side()) {
    for (std::size_t i = 0; i < group.points; ++i) {
      double* const to = group.first + i * group.stride;
      const double* const point = from + i * complex_lanes_size;
      const auto parts = simd::interleave(simd::load(point), simd::load(point + lanes));
      simd::store(to, parts[0]);
      simd::store(to + lanes, parts[1]);
    }
    return;
  }
  std::size_t i = 0;
  if (group.stride == point_size) {
    for (; i + points_at_once <= group.points; i += points_at_once) {
      std::array<Lanes, lanes> block;
      for (std::size_t part = 0; part < lanes; ++part)
        block[part] = simd::load(from + i * complex_lanes_size + part * lanes);
      simd::transpose(block);
      for (std::size_t lane = 0; lane < group.count; ++lane)
        simd::store(group.line(lane) + i * group.stride, block[lane]);
    }
  }
  for (; i < group.points; ++i) {
    for (std::size_t lane = 0; lane < group.count; ++lane) {
      double* const to = group.line(lane) + i * group.stride;
      to[0] = from[i * complex_lanes_size + lane];
      to[1] = from[i * complex_lanes_size + lanes + lane];
    }
  }
}

/// A group's lines, in place. The inverse lacks its factor.
template <bool inverse>
void transform(const simd::Fft& fft, double* lines, double* scratch) {
  const auto in_order = [](const simd::ComplexLanes& value) { return inverse ? simd::swapped(value) : value; };
  fft([&](std::size_t i) { return in_order(simd::load_complex(lines + i * complex_lanes_size)); },
      [&](std::size_t i, const simd::ComplexLanes& value) {
        simd::store_complex(lines + i * complex_lanes_size, in_order(value));
      },
      scratch);
}

/// Call `visit(group)` for as many lines at once as there are lanes, of so many beside each other.
template <class Visit>
void for_each_group(double* first, std::size_t points, std::size_t stride, std::size_t apart, std::size_t lines,
                    Visit&& visit) {
  for (std::size_t line = 0; line < lines; line += lanes)
    visit(Group{first + line * apart, points, stride, apart, std::min(lanes, lines - line)});
}

/// Of every rank along one dimension of the grid, the region that `of` gives for its place.
template <class Of>
std::vector<Region> regions(std::size_t ranks, Of&& of) {
  std::vector<Region> all;
  for (std::size_t place = 0; place < ranks; ++place) all.push_back(of(place));
  return all;
}

/// Call `of(x, y, z)` for each point of a region, in the order of its memory.
template <class Of>
void for_each_point(const Region& region, Of&& of) {
  for (std::size_t z = region.shares[2].begin; z < region.shares[2].end; ++z) {
    for (std::size_t y = region.shares[1].begin; y < region.shares[1].end; ++y) {
      for (std::size_t x = region.shares[0].begin; x < region.shares[0].end; ++x) of(x, y, z);
    }
  }
}

/// C(n, k) / 2^n for all k.
std::vector<double> binomial_weights(int n) {
  std::vector<double> weights{1};
  for (int row = 0; row < n; ++row) {
    weights.push_back(0);
    for (std::size_t k = weights.size() - 1; k > 0; --k) weights[k] = weight * (weights[k] + weights[k - 1]);
    weights[0] *= weight;
  }
  return weights;
}

}  // namespace

std::optional<std::array<std::size_t, 2>> rank_grid(const Size& size, std::size_t ranks, Decomposition decomposition) {
  const std::size_t most_along_z = std::min(size[1], size[2]);
  const std::size_t most_along_x = decomposition == Decomposition::slab ? 1 : std::min(size[0], size[1]);
  std::optional<std::array<std::size_t, 2>> best;
  const auto distance = [](std::size_t a, std::size_t b) { return a > b ? a - b : b - a; };
  for (std::size_t along_x = 1; along_x <= std::min(ranks, most_along_x); ++along_x) {
    const std::size_t along_z = ranks / along_x;
    if (along_z * along_x != ranks || along_z > most_along_z) continue;
    if (!best || distance(along_z, along_x) < distance((*best)[0], (*best)[1])) best = {along_z, along_x};
  }
  return best;
}

Convolution::Convolution(MPI_Comm communicator, const Size& size, const std::array<std::size_t, 2>& grid)
    : size_(size), fft_{simd::Fft(size[0]), simd::Fft(size[1]), simd::Fft(size[2])} {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  const std::array place{static_cast<std::size_t>(rank) / grid[1], static_cast<std::size_t>(rank) % grid[1]};
  MPI_Comm_split(communicator, static_cast<int>(place[1]), rank, &along_z_);
  MPI_Comm_split(communicator, static_cast<int>(place[0]), rank, &along_x_);
  const auto of = [&](std::size_t dimension, std::size_t along, std::size_t at) {
    return kernel::share(size[dimension], grid[along], at);
  };
  const auto whole = [&](std::size_t dimension) { return Share{0, size[dimension]}; };
  const auto rows = [&](std::size_t x) { return Region{{whole(0), of(1, 1, x), of(2, 0, place[0])}}; };
  const auto planes = [&](std::size_t z, std::size_t x) { return Region{{of(0, 1, x), whole(1), of(2, 0, z)}}; };
  const auto columns = [&](std::size_t z) { return Region{{of(0, 1, place[1]), of(1, 0, z), whole(2)}}; };
  rows_ = rows(place[1]);
  planes_ = planes(place[0], place[1]);
  columns_ = columns(place[0]);

  row_points_ = kernel::Buffer<double>(point_size * rows_.points());
  planes_at_ = row_points_.data();
  if (grid[1] > 1) {
    rows_and_planes_.emplace(along_x_, regions(grid[1], rows),
                             regions(grid[1], [&](std::size_t x) { return planes(place[0], x); }));
    plane_points_ = kernel::Buffer<double>(point_size * planes_.points());
    planes_at_ = plane_points_.data();
  }
  columns_at_ = planes_at_;
  if (grid[0] > 1) {
    planes_and_columns_.emplace(along_z_, regions(grid[0], [&](std::size_t z) { return planes(z, place[1]); }),
                                regions(grid[0], columns));
    column_points_ = kernel::Buffer<double>(point_size * columns_.points());
    columns_at_ = column_points_.data();
  }
  kernel_ = kernel::Buffer<double>(point_size * columns_.points());
  lines_ = kernel::Buffer<double>(std::ranges::max(size) * complex_lanes_size);
  scratch_ = kernel::Buffer<double>(2 * lines_.size());
}

Convolution::~Convolution() {
  MPI_Comm_free(&along_z_);
  MPI_Comm_free(&along_x_);
}

std::size_t Convolution::message_bytes() const {
  std::size_t most = 0;
  for (const auto* exchange : {&rows_and_planes_, &planes_and_columns_})
    if (*exchange) most = std::max(most, (*exchange)->message_bytes());
  return most;
}

template <bool inverse>
void Convolution::transform_rows() {
  const std::size_t line = point_size * size_[0];
  for_each_group(row_points_.data(), size_[0], point_size, line, rows_.count(1) * rows_.count(2),
                 [&](const Group& group) {
                   gather(group, lines_.data());
                   transform<inverse>(fft_[0], lines_.data(), scratch_.data());
                   scatter(lines_.data(), group);
                 });
}

template <bool inverse>
void Convolution::transform_planes() {
  const std::size_t line = point_size * planes_.count(0);
  for (std::size_t z = 0; z < planes_.count(2); ++z) {
    for_each_group(planes_at_ + z * size_[1] * line, size_[1], line, point_size, planes_.count(0),
                   [&](const Group& group) {
                     gather(group, lines_.data());
                     transform<inverse>(fft_[1], lines_.data(), scratch_.data());
                     scatter(lines_.data(), group);
                   });
  }
}

/// `visit(group)` with the lines gathered; they are put back afterwards.
template <class Visit>
void Convolution::for_each_column_group(Visit&& visit) {
  const std::size_t plane = point_size * columns_.count(0) * columns_.count(1);
  for_each_group(columns_at_, size_[2], plane, point_size, columns_.count(0) * columns_.count(1),
                 [&](const Group& group) {
                   gather(group, lines_.data());
                   visit(group);
                   scatter(lines_.data(), group);
                 });
}

void Convolution::to_columns() {
  transform_rows<false>();
  if (rows_and_planes_) rows_and_planes_->forth(row_points_.data(), planes_at_);
  transform_planes<false>();
  if (planes_and_columns_) planes_and_columns_->forth(planes_at_, columns_at_);
}

void Convolution::take_kernel() {
  to_columns();
  for_each_column_group([this](const Group&) { transform<false>(fft_[2], lines_.data(), scratch_.data()); });
  const double points = static_cast<double>(size_[0]) * static_cast<double>(size_[1]) * static_cast<double>(size_[2]);
  for (std::size_t i = 0; i < kernel_.size(); ++i) kernel_[i] = columns_at_[i] / points;
}

void Convolution::convolve() {
  to_columns();
  for_each_column_group([this](const Group& group) {
    transform<false>(fft_[2], lines_.data(), scratch_.data());
    // The kernel lies as the columns do; a group's part of it comes into the transforms' scratch memory.
    Group of_kernel = group;
    of_kernel.first = kernel_.data() + (group.first - columns_at_);
    gather(of_kernel, scratch_.data());
    for (std::size_t i = 0; i < size_[2]; ++i) {
      double* const point = lines_.data() + i * complex_lanes_size;
      const simd::ComplexLanes a = simd::load_complex(point);
      const simd::ComplexLanes b = simd::load_complex(scratch_.data() + i * complex_lanes_size);
      simd::store_complex(point, {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re});
    }
    transform<true>(fft_[2], lines_.data(), scratch_.data());
  });
  if (planes_and_columns_) planes_and_columns_->back(columns_at_, planes_at_);
  transform_planes<true>();
  if (rows_and_planes_) rows_and_planes_->back(planes_at_, row_points_.data());
  transform_rows<true>();
}

std::array<double, 2> initial_value(const Size& size, const Size& point) {
  const std::uint64_t bits = kernel::scramble((point[2] * size[1] + point[1]) * size[0] + point[0] + 1);
  return {kernel::small_integer(bits), kernel::small_integer(bits, 8)};
}

void fill_field(Convolution& convolution) {
  for_each_point(convolution.region(), [&](std::size_t x, std::size_t y, std::size_t z) {
    const auto value = initial_value(convolution.size(), {x, y, z});
    std::ranges::copy(value, convolution.field() + point_size * convolution.region().at(x, y, z));
  });
}

void fill_kernel(Convolution& convolution) {
  const Region& region = convolution.region();
  std::fill_n(convolution.field(), point_size * region.points(), 0.0);
  for (const auto& [x, y, z] : kernel_points(convolution.size())) {
    const Region point{{Share{x, x + 1}, Share{y, y + 1}, Share{z, z + 1}}};
    if (region.common(point).points() > 0) convolution.field()[point_size * region.at(x, y, z)] += weight;
  }
}

std::array<Size, 2> kernel_points(const Size& size) {
  return {{{1 % size[0], size[1] / 3, size[2] / 2}, {size[0] / 2, 2 * size[1] / 3, 1 % size[2]}}};
}

double error_of(const Size& size, const Region& region, const double* field, int convolutions) {
  const std::vector<double> weights = binomial_weights(convolutions);
  const auto [a, b] = kernel_points(size);
  struct Term {
    Size shift{};
    double weight = 0;
  };
  std::vector<Term> terms;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] < least_weight) continue;
    Term term{{}, weights[k]};
    for (std::size_t dimension = 0; dimension < 3; ++dimension)
      term.shift[dimension] = ((weights.size() - 1 - k) * a[dimension] + k * b[dimension]) % size[dimension];
    terms.push_back(term);
  }
  double error = 0;
  const auto look = [&](std::size_t x, std::size_t y, std::size_t z) {
    std::array<double, 2> expected{};
    for (const auto& [shift, of_term] : terms) {
      const auto source = [&](std::size_t dimension, std::size_t place) {
        return (place + size[dimension] - shift[dimension]) % size[dimension];
      };
      const auto value = initial_value(size, {source(0, x), source(1, y), source(2, z)});
      for (std::size_t part = 0; part < 2; ++part) expected[part] += of_term * value[part];
    }
    for (std::size_t part = 0; part < 2; ++part) {
      const double found = std::abs(field[point_size * region.at(x, y, z) + part] - expected[part]);
      error = std::isfinite(found) ? std::max(error, found) : std::numeric_limits<double>::infinity();
    }
  };
  for_each_point(region, look);
  return error;
}

double most_error(const Size& size, int convolutions) {
  const auto passes = static_cast<double>(std::bit_width(size[0] * size[1] * size[2]));
  return std::numeric_limits<double>::epsilon() * most_amplitude * 2 * passes * convolutions;
}

}  // namespace fabricbench::fft_convolution
