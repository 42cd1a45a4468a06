// Fourier transforms of every size there is, and the convolution by them on however many ranks run this, each beside
// its definition written out.
#include <gtest/gtest.h>
#include <mpi.h>

#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

#include "kernel/fft_convolution/convolution.hpp"
#include "kernel/frame/level.hpp"
#include "kernel/frame/scramble.hpp"

namespace fabricbench::kernel {
constinit const std::string_view compiled_level = "native";  // a program of one level: it never becomes another
constinit const bool has_one_level = false;
}  // namespace fabricbench::kernel

namespace fabricbench::fft_convolution {
namespace {

using simd::complex_lanes_size;
using simd::lanes;
using Complex = std::complex<double>;
using Whole = std::vector<Complex>;  // of all ranks, x fastest

double random_number(std::uint64_t counter) {
  return static_cast<double>(kernel::scramble(counter) >> 11U) * 0x1p-52 - 1;
}

int world_size() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

/// By the definition, of one lane.
Whole transform(const std::vector<double>& points, std::size_t size, std::size_t lane) {
  Whole result(size);
  for (std::size_t k = 0; k < size; ++k) {
    for (std::size_t j = 0; j < size; ++j) {
      const double* const point = points.data() + j * complex_lanes_size;
      const double angle = -2 * std::numbers::pi * static_cast<double>(j * k % size) / static_cast<double>(size);
      result[k] += Complex(point[lane], point[lanes + lane]) * std::polar(1.0, angle);
    }
  }
  return result;
}

TEST(Fft, TransformsEverySizeOfItsFactorsInPlace) {
  std::size_t sizes = 0;
  for (std::size_t size = 1; size <= 125; ++size) {
    if (!simd::has_transform(size)) continue;
    ++sizes;
    std::vector<double> points(size * complex_lanes_size);
    for (std::size_t i = 0; i < points.size(); ++i) points[i] = random_number(i);
    const std::vector<double> given = points;
    const simd::Fft fft(size);
    std::vector<double> scratch(fft.scratch_size());
    fft([&](std::size_t i) { return simd::load_complex(points.data() + i * complex_lanes_size); },
        [&](std::size_t i, const simd::ComplexLanes& value) {
          simd::store_complex(points.data() + i * complex_lanes_size, value);
        },
        scratch.data());
    for (const std::size_t lane : {std::size_t{0}, lanes - 1}) {
      const Whole expected = transform(given, size, lane);
      for (std::size_t k = 0; k < size; ++k) {
        const double* const point = points.data() + k * complex_lanes_size;
        EXPECT_NEAR(point[lane], expected[k].real(), 1e-12) << size;
        EXPECT_NEAR(point[lanes + lane], expected[k].imag(), 1e-12) << size;
      }
    }
  }
  EXPECT_EQ(sizes, 37);
  EXPECT_FALSE(simd::has_transform(0));
  EXPECT_FALSE(simd::has_transform(7 * 16));
}

/// Sides of one, shorter and longer than a vector, and whose shares are uneven on most numbers of ranks.
constexpr Size sizes[] = {{9, 10, 12}, {10, 9, 15}, {3, 16, 9}, {1, 9, 10}};

std::size_t place(const Size& size, const Size& point) { return (point[2] * size[1] + point[1]) * size[0] + point[0]; }

template <class Of>
void for_each_point(const Region& region, Of&& of) {
  for (std::size_t z = region.shares[2].begin; z < region.shares[2].end; ++z) {
    for (std::size_t y = region.shares[1].begin; y < region.shares[1].end; ++y) {
      for (std::size_t x = region.shares[0].begin; x < region.shares[0].end; ++x) of(Size{x, y, z});
    }
  }
}

Region whole_region(const Size& size) { return {{Share{0, size[0]}, Share{0, size[1]}, Share{0, size[2]}}}; }

Whole random_whole(const Size& size, std::uint64_t seed) {
  Whole whole(size[0] * size[1] * size[2]);
  for (std::size_t i = 0; i < whole.size(); ++i)
    whole[i] = {random_number(seed + 2 * i), random_number(seed + 2 * i + 1)};
  return whole;
}

void put(Convolution& convolution, const Whole& whole) {
  for_each_point(convolution.region(), [&](const Size& point) {
    double* const to = convolution.field() + 2 * convolution.region().at(point[0], point[1], point[2]);
    const Complex value = whole[place(convolution.size(), point)];
    to[0] = value.real();
    to[1] = value.imag();
  });
}

/// At one point, by the definition.
Complex convolved(const Size& size, const Whole& kernel, const Whole& field, const Size& at) {
  Complex sum;
  for_each_point(whole_region(size), [&](const Size& shift) {
    Size source{};
    for (std::size_t i = 0; i < 3; ++i) source[i] = (at[i] + size[i] - shift[i]) % size[i];
    sum += kernel[place(size, shift)] * field[place(size, source)];
  });
  return sum;
}

template <class Of>
void on_every_grid(Of&& of) {
  for (const Size& size : sizes) {
    for (const Decomposition decomposition : {Decomposition::slab, Decomposition::pencil}) {
      const auto grid = rank_grid(size, static_cast<std::size_t>(world_size()), decomposition);
      if (grid) of(size, *grid);
    }
  }
}

TEST(Convolution, OfAnyFieldAndKernelIsTheSumOfItsDefinition) {
  on_every_grid([](const Size& size, const std::array<std::size_t, 2>& grid) {
    Convolution convolution(MPI_COMM_WORLD, size, grid);
    const Whole kernel = random_whole(size, 1);
    const Whole field = random_whole(size, 100'000);
    put(convolution, kernel);
    convolution.take_kernel();
    put(convolution, field);
    convolution.convolve();
    std::size_t looked_at = 0;
    for_each_point(convolution.region(), [&](const Size& point) {
      if (looked_at++ % 7 != 0) return;  // a sum over all points each
      const double* const found = convolution.field() + 2 * convolution.region().at(point[0], point[1], point[2]);
      const Complex expected = convolved(size, kernel, field, point);
      EXPECT_NEAR(found[0], expected.real(), 1e-11);
      EXPECT_NEAR(found[1], expected.imag(), 1e-11);
    });
  });
}

TEST(Convolution, GivesEachPointToOneRank) {
  on_every_grid([](const Size& size, const std::array<std::size_t, 2>& grid) {
    const Convolution convolution(MPI_COMM_WORLD, size, grid);
    std::vector<int> owners(size[0] * size[1] * size[2]);
    for_each_point(convolution.region(), [&](const Size& point) { owners[place(size, point)] += 1; });
    MPI_Allreduce(MPI_IN_PLACE, owners.data(), static_cast<int>(owners.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(owners, std::vector<int>(owners.size(), 1));
  });
}

TEST(Convolution, AgainAndAgainIsWhatItsCheckExpectsAndAWrongPointIsFound) {
  on_every_grid([](const Size& size, const std::array<std::size_t, 2>& grid) {
    constexpr int times = 5;
    Convolution convolution(MPI_COMM_WORLD, size, grid);
    fill_kernel(convolution);
    convolution.take_kernel();
    fill_field(convolution);
    for (int i = 0; i < times; ++i) convolution.convolve();
    const auto error = [&] { return error_of(size, convolution.region(), convolution.field(), times); };
    EXPECT_LT(error(), most_error(size, times));
    EXPECT_GT(error_of(size, convolution.region(), convolution.field(), times + 1), 1);  // of another number of times
    double& last = convolution.field()[2 * convolution.region().points() - 1];
    last += 1e-9;
    EXPECT_GT(error(), most_error(size, times));
    last = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(error() < most_error(size, times));
  });
}

TEST(Convolution, TakesTheMostSquareGridForPencilsAndAsManySlabsAsThereArePlanes) {
  const Size size{4, 12, 16};
  using Grid = std::array<std::size_t, 2>;
  EXPECT_EQ(rank_grid(size, 12, Decomposition::slab), (Grid{12, 1}));
  EXPECT_EQ(rank_grid(size, 13, Decomposition::slab), std::nullopt);
  EXPECT_EQ(rank_grid(size, 12, Decomposition::pencil), (Grid{4, 3}));
  EXPECT_EQ(rank_grid(size, 48, Decomposition::pencil), (Grid{12, 4}));
  EXPECT_EQ(rank_grid(size, 7, Decomposition::pencil), (Grid{7, 1}));
  EXPECT_EQ(rank_grid(size, 13, Decomposition::pencil), std::nullopt);
}

}  // namespace
}  // namespace fabricbench::fft_convolution

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
