// The elliptic solver without its program, on however many ranks run this, beside the method written out over the whole
// grid, which every rank here can hold.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernel/elliptic/domain.hpp"
#include "kernel/frame/level.hpp"

namespace fabricbench::kernel {
constinit const std::string_view compiled_level = "native";  // a program of one level: it never becomes another
constinit const bool has_one_level = false;
}  // namespace fabricbench::kernel

namespace fabricbench::elliptic {
namespace {

/// Uneven on most numbers of ranks; of the first, nine ranks have a point along z each.
constexpr Size sizes[] = {{1, 1, 9}, {5, 4, 6}, {9, 8, 7}, {3, 20, 10}};

std::size_t world_size() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return static_cast<std::size_t>(ranks);
}

/// Numbers of the whole grid; 0 outside.
class Whole {
 public:
  explicit Whole(const Size& size) : size_(size), numbers_(size[0] * size[1] * size[2]) {}
  double at(std::size_t x, std::size_t y, std::size_t z) const {
    return x < size_[0] && y < size_[1] && z < size_[2] ? numbers_[place(x, y, z)] : 0;
  }
  double& operator()(std::size_t x, std::size_t y, std::size_t z) { return numbers_[place(x, y, z)]; }
  /// Of the six points around; below 0 is far outside.
  double around(std::size_t x, std::size_t y, std::size_t z) const {
    return at(x - 1, y, z) + at(x + 1, y, z) + at(x, y - 1, z) + at(x, y + 1, z) + at(x, y, z - 1) + at(x, y, z + 1);
  }

 private:
  std::size_t place(std::size_t x, std::size_t y, std::size_t z) const { return (z * size_[1] + y) * size_[0] + x; }
  Size size_;
  std::vector<double> numbers_;
};

using Box = std::array<Share, 3>;

template <class Of>
void for_each_point(const Box& box, Of&& of) {
  for (std::size_t z = box[2].begin; z < box[2].end; ++z) {
    for (std::size_t y = box[1].begin; y < box[1].end; ++y) {
      for (std::size_t x = box[0].begin; x < box[0].end; ++x) of(x, y, z);
    }
  }
}

/// A step by every rank, each from what all had before it.
Whole stepped(const Size& size, const Size& grid, const Whole& right_side, const Whole& before, int sweeps) {
  Whole after = before;
  for (std::size_t rank = 0; rank < grid[0] * grid[1] * grid[2]; ++rank) {
    const Size place{rank % grid[0], rank / grid[0] % grid[1], rank / grid[0] / grid[1]};
    Box box;
    for (std::size_t i = 0; i < 3; ++i) box[i] = kernel::share(size[i], grid[i], place[i]);
    Whole own = before;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      Whole next = own;
      for_each_point(box, [&](std::size_t x, std::size_t y, std::size_t z) {
        next(x, y, z) = (right_side.at(x, y, z) + own.around(x, y, z)) / diagonal;
      });
      own = next;
    }
    for_each_point(box, [&](std::size_t x, std::size_t y, std::size_t z) { after(x, y, z) = own.at(x, y, z); });
  }
  return after;
}

Whole solution_of(const Size& size) {
  Whole solution(size);
  for_each_point({Share{0, size[0]}, Share{0, size[1]}, Share{0, size[2]}},
                 [&](std::size_t x, std::size_t y, std::size_t z) {
                   solution(x, y, z) = exact_solution(size, static_cast<std::ptrdiff_t>(x),
                                                      static_cast<std::ptrdiff_t>(y), static_cast<std::ptrdiff_t>(z));
                 });
  return solution;
}

template <class Of>
void on_every_size(Of&& of) {
  for (const Size& size : sizes) {
    if (const auto grid = rank_grid(size, world_size())) of(size, *grid);
  }
}

Box box_of(const Domain& domain) { return {domain.points(0), domain.points(1), domain.points(2)}; }

TEST(EllipticDomain, StepsAsTheMethodSays) {
  on_every_size([](const Size& size, const Size& grid) {
    const Box all{Share{0, size[0]}, Share{0, size[1]}, Share{0, size[2]}};
    const Whole solution = solution_of(size);
    Whole right_side(size);
    for_each_point(all, [&](std::size_t x, std::size_t y, std::size_t z) {
      right_side(x, y, z) = diagonal * solution.at(x, y, z) - solution.around(x, y, z);
    });
    for (const int sweeps : {1, 2, 5}) {
      Domain domain(MPI_COMM_WORLD, size, grid);
      Whole expected(size);
      for (int step = 0; step < 3; ++step) {
        domain.step(sweeps);
        expected = stepped(size, grid, right_side, expected, sweeps);
        double error = 0;
        for_each_point(box_of(domain), [&](std::size_t x, std::size_t y, std::size_t z) {
          EXPECT_NEAR(domain.value(x, y, z), expected.at(x, y, z), 1e-11) << x << ' ' << y << ' ' << z;
          error = std::max(error, std::abs(expected.at(x, y, z) - solution.at(x, y, z)));
        });
        EXPECT_NEAR(domain.error(), error, 1e-11);
      }
    }
  });
}

TEST(EllipticDomain, ComesToTheExactSolutionNoSlowerThanItSays) {
  on_every_size([](const Size& size, const Size& grid) {
    constexpr int sweeps = 4;
    Domain domain(MPI_COMM_WORLD, size, grid);
    double contraction = domain.contraction(sweeps);
    MPI_Allreduce(MPI_IN_PLACE, &contraction, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_LE(contraction, sweep_contraction + 1e-12);
    domain.reset();
    double most = most_solution;
    for (int step = 0; step < 80; ++step) {
      domain.step(sweeps);
      most *= contraction;
      EXPECT_LE(domain.error(), most + 1e-12);
    }
    EXPECT_LE(domain.error(), 1e-12);
  });
}

TEST(EllipticDomain, GivesEachPointToOneRank) {
  on_every_size([](const Size& size, const Size& grid) {
    const Domain domain(MPI_COMM_WORLD, size, grid);
    std::vector<int> owners(size[0] * size[1] * size[2]);
    for_each_point(box_of(domain),
                   [&](std::size_t x, std::size_t y, std::size_t z) { owners[(z * size[1] + y) * size[0] + x] += 1; });
    MPI_Allreduce(MPI_IN_PLACE, owners.data(), static_cast<int>(owners.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(owners, std::vector<int>(owners.size(), 1));
  });
}

TEST(EllipticGrid, HasTheLeastFacesBetweenItsBoxes) {
  EXPECT_EQ(rank_grid({160, 160, 160}, 8), (Size{2, 2, 2}));
  EXPECT_EQ(rank_grid({100, 10, 10}, 8), (Size{8, 1, 1}));
  EXPECT_EQ(rank_grid({10, 10, 1000}, 9), (Size{1, 1, 9}));
  EXPECT_EQ(rank_grid({2, 3, 2}, 12), (Size{2, 3, 2}));
  EXPECT_EQ(rank_grid({2, 3, 2}, 5), std::nullopt);
}

}  // namespace
}  // namespace fabricbench::elliptic

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
