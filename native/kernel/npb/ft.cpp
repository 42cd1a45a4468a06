// FT: the heat equation du/dt = alpha laplace(u) on a periodic box of nx x ny x nz points, solved in Fourier space:
// from the spectrum V of a random complex field, the spectrum at time t is V(k) exp(-4 alpha pi^2 |k|^2 t) with each
// component of k in [-n/2, n/2), and the inverse transform gives the field. Every step is transformed back, and 1024 of
// its points are summed to a checksum.
//
// Three-dimensional transforms are one-dimensional ones along z, y and x, done where the dimension is whole
// (ft_layout.hpp): slabs with one all-to-all of the whole field per transform, pencils with two beyond nz ranks. The
// spectrum stays with columns of z. The inverse transform goes z, y, x, the forward one the other way. As many lines as
// a vector has lanes are transformed at once: neighbours in x for z and y; for x, neighbours in y, transposed in cache.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "kernel/npb/buffer.hpp"
#include "kernel/npb/fft.hpp"
#include "kernel/npb/ft_layout.hpp"
#include "kernel/npb/ft_problems.hpp"
#include "kernel/npb/lanes.hpp"
#include "kernel/npb/npb.hpp"
#include "kernel/npb/random.hpp"

namespace fabricbench::npb {

namespace fourier {

namespace {

/// exp(-4 alpha pi^2 k^2 t) for all k of a dimension. The three dimensions' product is the step's factor.
std::vector<double> decay(std::size_t size, int time) {
  constexpr double alpha = 1e-6;
  std::vector<double> factors;
  for (std::size_t k = 0; k < size; ++k) {
    const auto wave_number = static_cast<double>(2 * k < size ? k : size - k);
    factors.push_back(std::exp(-4 * alpha * std::numbers::pi * std::numbers::pi * wave_number * wave_number *
                               static_cast<double>(time)));
  }
  return factors;
}

class Solver {
 public:
  Solver(MPI_Comm communicator, const std::array<std::size_t, 3>& size)
      : communicator_(communicator),
        layout_(communicator, size),
        fft_{Fft(size[0]), Fft(size[1]), Fft(size[2])},
        spectrum_(layout_.column_y().count() * layout_.chunks().count() * size[2] * complex_lanes_size),
        lines_(std::max({size[0], size[1], size[2]}) * complex_lanes_size),
        scratch_(2 * lines_.size()) {}

  /// The spectrum of the initial field.
  void start() {
    for_each_row_group([this](std::size_t y, std::size_t z, std::size_t rows) {
      draw_rows(y, z, rows);
      transform_rows<false>(y, z, rows);
    });
    layout_.rows_to_planes();
    transform_planes<false>();
    layout_.planes_to_columns();
    for_each_column_group([this](std::size_t y, std::size_t chunk, double* spectrum) {
      fft_[2](
          [&](std::size_t z) { return load_complex(layout_.column(y, z) + chunk * complex_lanes_size); },
          [&](std::size_t z, const ComplexLanes& value) { store_complex(spectrum + z * complex_lanes_size, value); },
          scratch_.data());
    });
  }

  /// The field at a time, but for the factor 1/N.
  void solve(int time) {
    const auto decay_x = decay(layout_.size(0), time);
    const auto decay_y = decay(layout_.size(1), time);
    const auto decay_z = decay(layout_.size(2), time);
    for_each_column_group([&](std::size_t y, std::size_t chunk, const double* spectrum) {
      const Lanes decay_xy = decay_y[y] * load(decay_x.data() + (layout_.chunks().begin + chunk) * lanes);
      fft_[2](
          [&](std::size_t z) {
            const Lanes factor = decay_z[z] * decay_xy;
            const ComplexLanes value = load_complex(spectrum + z * complex_lanes_size);
            return ComplexLanes{factor * value.im, factor * value.re};
          },
          [&](std::size_t z, const ComplexLanes& value) {
            store_complex(layout_.column(y, z) + chunk * complex_lanes_size, swapped(value));
          },
          scratch_.data());
    });
    layout_.columns_to_planes();
    transform_planes<true>();
    layout_.planes_to_rows();
    for_each_row_group([this](std::size_t y, std::size_t z, std::size_t rows) {
      gather_rows(y, z, rows);
      transform_rows<true>(y, z, rows);
    });
  }

  std::complex<double> checksum() {
    constexpr std::size_t points = 1024;
    std::array<double, 2> own{};
    for (std::size_t j = 1; j <= points; ++j) {
      const std::size_t x = j % layout_.size(0);
      const std::size_t y = 3 * j % layout_.size(1);
      const std::size_t z = 5 * j % layout_.size(2);
      if (!has(layout_.z(), z) || !has(layout_.row_y(), y)) continue;
      const double* const chunk = layout_.row(y, z) + x / lanes * complex_lanes_size;
      own[0] += chunk[x % lanes];
      own[1] += chunk[lanes + x % lanes];
    }
    std::array<double, 2> total{};
    MPI_Allreduce(own.data(), total.data(), static_cast<int>(own.size()), MPI_DOUBLE, MPI_SUM, communicator_);
    const auto field_points = static_cast<double>(layout_.size(0) * layout_.size(1) * layout_.size(2));
    return {total[0] / field_points, total[1] / field_points};
  }

 private:
  static bool has(const Share& some, std::size_t index) { return some.begin <= index && index < some.end; }

  /// As many rows at once as there are lanes, the last ones of a plane with fewer.
  template <class Visit>
  void for_each_row_group(Visit visit) {
    const Share y_share = layout_.row_y();
    for (std::size_t z = layout_.z().begin; z < layout_.z().end; ++z) {
      for (std::size_t y = y_share.begin; y < y_share.end; y += lanes) visit(y, z, std::min(lanes, y_share.end - y));
    }
  }

  template <class Visit>
  void for_each_column_group(Visit visit) {
    double* spectrum = spectrum_.data();
    for (std::size_t y = layout_.column_y().begin; y < layout_.column_y().end; ++y) {
      for (std::size_t chunk = 0; chunk < layout_.chunks().count(); ++chunk) {
        visit(y, chunk, spectrum);
        spectrum += layout_.size(2) * complex_lanes_size;
      }
    }
  }

  /// The initial field on some rows, a row per lane, to lines_.
  void draw_rows(std::size_t y, std::size_t z, std::size_t rows) {
    constexpr std::uint64_t seed = 314159265;
    std::array<Random, lanes> random = make_random(seed, std::make_index_sequence<lanes>());
    for (std::size_t row = 0; row < rows; ++row) {
      random[row].skip(2 * layout_.size(0) * (y + row + layout_.size(1) * z));
    }
    for (std::size_t x = 0; x < layout_.size(0); ++x) {
      double* const point = lines_.data() + x * complex_lanes_size;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        point[lane] = random[lane].next();
        point[lanes + lane] = random[lane].next();
      }
    }
  }
  template <std::size_t... lane>
  static std::array<Random, lanes> make_random(std::uint64_t seed, std::index_sequence<lane...>) {
    return {(static_cast<void>(lane), Random(seed))...};
  }

  /// Rows of the layout, with x in the lanes, to lines_, with y in the lanes.
  void gather_rows(std::size_t y, std::size_t z, std::size_t rows) {
    const auto at = row_pointers(y, z, rows);
    for (std::size_t chunk = 0; chunk < layout_.size(0) / lanes; ++chunk) {
      for (const std::size_t part : {std::size_t{0}, lanes}) {
        const auto block = load_transposed(at, chunk * complex_lanes_size + part);
        double* const to = lines_.data() + chunk * lanes * complex_lanes_size + part;
        for (std::size_t i = 0; i < lanes; ++i) store(to + i * complex_lanes_size, block[i]);
      }
    }
  }

  /// Transform lines_ along x, to rows of the layout.
  template <bool inverse>
  void transform_rows(std::size_t y, std::size_t z, std::size_t rows) {
    const auto in_order = [](const ComplexLanes& value) { return inverse ? swapped(value) : value; };
    fft_[0]([&](std::size_t x) { return in_order(load_complex(lines_.data() + x * complex_lanes_size)); },
            [&](std::size_t x, const ComplexLanes& value) {
              store_complex(lines_.data() + x * complex_lanes_size, in_order(value));
            },
            scratch_.data());
    const auto at = row_pointers(y, z, rows);
    for (std::size_t chunk = 0; chunk < layout_.size(0) / lanes; ++chunk) {
      for (const std::size_t part : {std::size_t{0}, lanes}) {
        std::array<double*, lanes> from{};
        for (std::size_t i = 0; i < lanes; ++i) from[i] = lines_.data() + (chunk * lanes + i) * complex_lanes_size;
        const auto block = load_transposed(from, part);
        for (std::size_t row = 0; row < rows; ++row) store(at[row] + chunk * complex_lanes_size + part, block[row]);
      }
    }
  }

  /// Of as many rows as there are lanes; the last one again where there are fewer.
  std::array<double*, lanes> row_pointers(std::size_t y, std::size_t z, std::size_t rows) {
    std::array<double*, lanes> pointers{};
    for (std::size_t row = 0; row < lanes; ++row) pointers[row] = layout_.row(y + std::min(row, rows - 1), z);
    return pointers;
  }

  /// Along y, in place.
  template <bool inverse>
  void transform_planes() {
    const auto in_order = [](const ComplexLanes& value) { return inverse ? swapped(value) : value; };
    std::vector<double*> at(layout_.size(1));
    for (std::size_t z = layout_.z().begin; z < layout_.z().end; ++z) {
      for (std::size_t y = 0; y < at.size(); ++y) at[y] = layout_.plane_line(y, z);
      for (std::size_t chunk = 0; chunk < layout_.chunks().count(); ++chunk) {
        const std::size_t place = chunk * complex_lanes_size;
        fft_[1]([&](std::size_t y) { return in_order(load_complex(at[y] + place)); },
                [&](std::size_t y, const ComplexLanes& value) { store_complex(at[y] + place, in_order(value)); },
                scratch_.data());
      }
    }
  }

  MPI_Comm communicator_;
  Layout layout_;
  std::array<Fft, 3> fft_;
  Buffer<double> spectrum_;  // [y][chunk][z] of columns
  Buffer<double> lines_;     // a group of rows, the lanes being rows
  Buffer<double> scratch_;
};

std::optional<std::string> refusal(Class size, int ranks) {
  const auto points = of_class(problems, size).size;
  if (rank_grid(points, static_cast<std::size_t>(ranks))) return std::nullopt;
  return "ft: " + std::to_string(ranks) + " ranks cannot share " + std::to_string(points[2]) +
         " planes; needed are up to as many ranks, or a product of a number up to that and one up to " +
         std::to_string(points[0] / 8);
}

Result run(MPI_Comm communicator, Class size) {
  const Problem& given = of_class(problems, size);
  Solver solver(communicator, given.size);
  solver.start();  // the warm-up that the rules ask for
  const int iterations = static_cast<int>(given.checksums.size());
  std::vector<std::complex<double>> checksums;
  checksums.reserve(given.checksums.size());

  TimedSection timed(communicator);
  solver.start();
  for (int time = 1; time <= iterations; ++time) {
    solver.solve(time);
    checksums.push_back(solver.checksum());
  }
  Result result;
  result.seconds = timed.end();
  const auto points = static_cast<double>(given.size[0] * given.size[1] * given.size[2]);
  const double logarithm = std::log(points);
  result.operations =
      points * (14.8157 + 7.19641 * logarithm + (5.23518 + 7.21113 * logarithm) * static_cast<double>(iterations));
  result.size =
      std::to_string(given.size[0]) + " x " + std::to_string(given.size[1]) + " x " + std::to_string(given.size[2]);
  result.iterations = iterations;
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    const std::string name = "checksum " + std::to_string(i + 1);
    result.checks.push_back({name + " re", checksums[i].real(), given.checksums[i].real(), 1e-12});
    result.checks.push_back({name + " im", checksums[i].imag(), given.checksums[i].imag(), 1e-12});
  }
  result.fingerprint = fingerprint(checksums.data(), checksums.size() * sizeof checksums[0]);
  return result;
}

}  // namespace

}  // namespace fourier

const Kernel ft{"ft", "three-dimensional Fourier transforms: an all-to-all of the whole field each", fourier::refusal,
                fourier::run};

}  // namespace fabricbench::npb
