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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/frame/buffer.hpp"
#include "kernel/npb/ft_layout.hpp"
#include "kernel/npb/lanes.hpp"
#include "kernel/npb/npb.hpp"
#include "kernel/npb/random.hpp"
#include "kernel/simd/fft.hpp"

namespace fabricbench::npb {

namespace fourier {

namespace {

/// Points per dimension, x first, and the checksum that the specification knows after each iteration.
struct Problem {
  std::array<std::size_t, 3> size;
  std::span<const std::complex<double>> checksums;
};

constexpr std::array<std::complex<double>, 6> checksums_s{{
    {5.546087004964e+02, 4.845363331978e+02},
    {5.546385409189e+02, 4.865304269511e+02},
    {5.546148406171e+02, 4.883910722336e+02},
    {5.545423607415e+02, 4.901273169046e+02},
    {5.544255039624e+02, 4.917475857993e+02},
    {5.542683411902e+02, 4.932597244941e+02},
}};

constexpr std::array<std::complex<double>, 6> checksums_w{{
    {5.673612178944e+02, 5.293246849175e+02},
    {5.631436885271e+02, 5.282149986629e+02},
    {5.594024089970e+02, 5.270996558037e+02},
    {5.560698047020e+02, 5.260027904925e+02},
    {5.530898991250e+02, 5.249400845633e+02},
    {5.504159734538e+02, 5.239212247086e+02},
}};

constexpr std::array<std::complex<double>, 6> checksums_a{{
    {5.046735008193e+02, 5.114047905510e+02},
    {5.059412319734e+02, 5.098809666433e+02},
    {5.069376896287e+02, 5.098144042213e+02},
    {5.077892868474e+02, 5.101336130759e+02},
    {5.085233095391e+02, 5.104914655194e+02},
    {5.091487099959e+02, 5.107917842803e+02},
}};

constexpr std::array<std::complex<double>, 20> checksums_b{{
    {5.177643571579e+02, 5.077803458597e+02}, {5.154521291263e+02, 5.088249431599e+02},
    {5.146409228649e+02, 5.096208912659e+02}, {5.142378756213e+02, 5.101023387619e+02},
    {5.139626667737e+02, 5.103976610617e+02}, {5.137423460082e+02, 5.105948019802e+02},
    {5.135547056878e+02, 5.107404165783e+02}, {5.133910925466e+02, 5.108576573661e+02},
    {5.132470705390e+02, 5.109577278523e+02}, {5.131197729984e+02, 5.110460304483e+02},
    {5.130070319283e+02, 5.111252433800e+02}, {5.129070537032e+02, 5.111968077718e+02},
    {5.128182883502e+02, 5.112616233064e+02}, {5.127393733383e+02, 5.113203605551e+02},
    {5.126691062020e+02, 5.113735928093e+02}, {5.126064276004e+02, 5.114218460548e+02},
    {5.125504076570e+02, 5.114656139760e+02}, {5.125002331720e+02, 5.115053595966e+02},
    {5.124551951846e+02, 5.115415130407e+02}, {5.124146770029e+02, 5.115744692211e+02},
}};

constexpr std::array<std::complex<double>, 20> checksums_c{{
    {5.195078707457e+02, 5.149019699238e+02}, {5.155422171134e+02, 5.127578201997e+02},
    {5.144678022222e+02, 5.122251847514e+02}, {5.140150594328e+02, 5.121090289018e+02},
    {5.137550426810e+02, 5.121143685824e+02}, {5.135811056728e+02, 5.121496764568e+02},
    {5.134569343165e+02, 5.121870921893e+02}, {5.133651975661e+02, 5.122193250322e+02},
    {5.132955192805e+02, 5.122454735794e+02}, {5.132410471738e+02, 5.122663649603e+02},
    {5.131971141679e+02, 5.122830879827e+02}, {5.131605205716e+02, 5.122965869718e+02},
    {5.131290734194e+02, 5.123075927445e+02}, {5.131012720314e+02, 5.123166486553e+02},
    {5.130760908195e+02, 5.123241541685e+02}, {5.130528295923e+02, 5.123304037599e+02},
    {5.130310107773e+02, 5.123356167976e+02}, {5.130103090133e+02, 5.123399592211e+02},
    {5.129905029333e+02, 5.123435588985e+02}, {5.129714421109e+02, 5.123465164008e+02},
}};

constexpr std::array<std::complex<double>, 25> checksums_d{{
    {5.122230065252e+02, 5.118534037109e+02}, {5.120463975765e+02, 5.117061181082e+02},
    {5.119865766760e+02, 5.117096364601e+02}, {5.119518799488e+02, 5.117373863950e+02},
    {5.119269088223e+02, 5.117680347632e+02}, {5.119082416858e+02, 5.117967875532e+02},
    {5.118943814638e+02, 5.118225281841e+02}, {5.118842385057e+02, 5.118451629348e+02},
    {5.118769435632e+02, 5.118649119387e+02}, {5.118718203448e+02, 5.118820803844e+02},
    {5.118683569061e+02, 5.118969781011e+02}, {5.118661708593e+02, 5.119098918835e+02},
    {5.118649768950e+02, 5.119210777066e+02}, {5.118645605626e+02, 5.119307604484e+02},
    {5.118647586618e+02, 5.119391362671e+02}, {5.118654451572e+02, 5.119463757241e+02},
    {5.118665212451e+02, 5.119526269238e+02}, {5.118679083821e+02, 5.119580184108e+02},
    {5.118695433664e+02, 5.119626617538e+02}, {5.118713748264e+02, 5.119666538138e+02},
    {5.118733606701e+02, 5.119700787219e+02}, {5.118754661974e+02, 5.119730095953e+02},
    {5.118776626738e+02, 5.119755100241e+02}, {5.118799262314e+02, 5.119776353561e+02},
    {5.118822370068e+02, 5.119794338060e+02},
}};

constexpr std::array<Problem, 6> problems{{
    {{64, 64, 64}, checksums_s},
    {{128, 128, 32}, checksums_w},
    {{256, 256, 128}, checksums_a},
    {{512, 256, 256}, checksums_b},
    {{512, 512, 512}, checksums_c},
    {{2048, 1024, 1024}, checksums_d},
}};

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
