// Shared memory and the kernels on it without their programs, on however many ranks run this: what ranks read beside
// what was written, the factors beside textbook ones, the image beside one that is traced without the tree.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernel/frame/level.hpp"
#include "kernel/shared/lu.hpp"
#include "kernel/shared/raytrace.hpp"
#include "kernel/shared/tracer.hpp"

namespace fabricbench::kernel {
constinit const std::string_view compiled_level = "native";  // a program of one level: it never becomes another
constinit const bool has_one_level = false;
}  // namespace fabricbench::kernel

namespace fabricbench::shared {
namespace {

constexpr std::size_t small_page_bytes = 256;
constexpr std::size_t words_of_page = small_page_bytes / sizeof(std::uint64_t);

std::uint64_t word_at(Memory& memory, std::size_t word) {
  std::uint64_t found = 0;
  std::memcpy(&found, memory.read(word * sizeof found, sizeof found), sizeof found);
  return found;
}

void write_word(Memory& memory, std::size_t word, std::uint64_t value) {
  memory.write(word * sizeof value, std::as_bytes(std::span(&value, 1)));
}

class SharedMemory : public testing::TestWithParam<Placement> {
 protected:
  SharedMemory() : memory(MPI_COMM_WORLD, 3, small_page_bytes, GetParam()) {}
  std::size_t words() const { return 3 * words_of_page * static_cast<std::size_t>(memory.ranks()); }
  std::size_t others() const { return static_cast<std::size_t>(memory.ranks() - 1); }
  bool is_own(std::size_t word) const { return static_cast<int>(word) % memory.ranks() == memory.rank(); }
  Memory memory;
};

TEST_P(SharedMemory, HasAfterABarrierWhatRanksWroteIntoEachOthersPages) {
  for (const std::uint64_t round : {1U, 2U}) {  // the second finds nothing of the first in copies
    for (std::size_t word = 0; word < words(); ++word) {
      if (is_own(word)) write_word(memory, word, mixed(round) + word);
    }
    memory.barrier();
    for (std::size_t word = 0; word < words(); ++word) ASSERT_EQ(word_at(memory, word), mixed(round) + word) << word;
    memory.barrier();
  }
}

TEST_P(SharedMemory, FetchesAPageOfOthersOnceUntilABarrier) {
  for (int round = 1; round <= 2; ++round) {
    for (std::size_t word = 0; word < words(); ++word) EXPECT_EQ(word_at(memory, word), 0U);
    EXPECT_EQ(memory.moved().pages_fetched, static_cast<std::int64_t>(3 * others()) * round);
    memory.barrier();
  }
}

TEST_P(SharedMemory, ReadsItsOwnWritesBeforeTheBarrierAndLosesNoneByFetching) {
  for (std::size_t word = 0; word < words(); ++word) {
    if (is_own(word)) write_word(memory, word, word + 1);
  }
  for (std::size_t word = 0; word < words(); ++word) {
    if (is_own(word)) {
      EXPECT_EQ(word_at(memory, word), word + 1);
    }
  }
  memory.barrier();
  for (std::size_t word = 0; word < words(); ++word) EXPECT_EQ(word_at(memory, word), word + 1);
}

TEST_P(SharedMemory, PutsWritesBesideEachOtherAtOnceAndNoMoreThanWasWritten) {
  const std::size_t next = static_cast<std::size_t>(memory.rank() + 1) % static_cast<std::size_t>(memory.ranks());
  const std::size_t stretch =
      GetParam() == Placement::turns ? next * words_of_page : memory.stretch_of(static_cast<int>(next)) / 8;
  for (std::size_t word = 4; word < 12; ++word) write_word(memory, stretch + word, 7);
  memory.barrier();
  EXPECT_EQ(memory.moved().writes, memory.ranks() == 1 ? 0 : 1);
  EXPECT_EQ(memory.moved().bytes_put, memory.ranks() == 1 ? 0 : 64);
  EXPECT_EQ(word_at(memory, stretch + 3), 0U);
  EXPECT_EQ(word_at(memory, stretch + 4), 7U);
  EXPECT_EQ(word_at(memory, stretch + 11), 7U);
  EXPECT_EQ(word_at(memory, stretch + 12), 0U);
}

INSTANTIATE_TEST_SUITE_P(InEachPlacement, SharedMemory, testing::Values(Placement::stretches, Placement::turns));

TEST(SharedMemoryOfMany, KeepsMoreWritesThanItPutsAtOnce) {
  Memory memory(MPI_COMM_WORLD, 64, 1024, Placement::turns);
  const std::size_t words = 64 * 128 * static_cast<std::size_t>(memory.ranks());
  for (std::size_t word = static_cast<std::size_t>(memory.rank()); word < words;
       word += 2 * static_cast<std::size_t>(memory.ranks()))  // with gaps: each is a change of its own
    write_word(memory, word, word + 1);
  memory.barrier();
  std::size_t written = 0;
  for (std::size_t word = 0; word < words; ++word) written += word_at(memory, word) == word + 1 ? 1U : 0U;
  EXPECT_EQ(written, words / 2);
}

TEST(SharedCounters, GiveEachNumberToOneRank) {
  Counters counters(MPI_COMM_WORLD);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  constexpr int each = 20;
  std::vector<std::int64_t> taken(each);
  for (std::int64_t& number : taken) number = counters.take(ranks - 1);
  std::vector<std::int64_t> all(taken.size() * static_cast<std::size_t>(ranks));
  MPI_Allgather(taken.data(), each, MPI_INT64_T, all.data(), each, MPI_INT64_T, MPI_COMM_WORLD);
  std::ranges::sort(all);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i));
}

// LU.

struct Order {
  std::int64_t n;
  std::int64_t block;
  std::size_t bytes_of_page;  // blocks of several pages, and pages of several blocks
};
constexpr Order orders[] = {{1, 1, 256}, {5, 2, 4096}, {23, 5, 256}, {24, 4, 1024}, {30, 64, 4096}};

/// The factors by their definition, a row after the other.
std::vector<double> textbook_factors(std::int64_t n) {
  const auto size = static_cast<std::size_t>(n);
  std::vector<double> a(size * size);
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = entry(n, static_cast<std::int64_t>(i / size), static_cast<std::int64_t>(i % size));
  for (std::size_t k = 0; k < size; ++k) {
    for (std::size_t i = k + 1; i < size; ++i) {
      a[i * size + k] /= a[k * size + k];
      for (std::size_t j = k + 1; j < size; ++j) a[i * size + j] -= a[i * size + k] * a[k * size + j];
    }
  }
  return a;
}

struct Factored {
  Factored(MPI_Comm communicator, const Order& order)
      : blocks(order.n, order.block, size_of(communicator)),
        memory(communicator, blocks.pages_of_each(order.bytes_of_page), order.bytes_of_page, Placement::stretches) {
    fill(memory, blocks);
    factor(memory, blocks);
  }
  static int size_of(MPI_Comm communicator) {
    int size = 0;
    MPI_Comm_size(communicator, &size);
    return size;
  }
  Blocks blocks;
  Memory memory;
};

TEST(SharedLu, HasTheFactorsOfTheTextbookWithTheSameBitsOnAnyRanks) {
  for (const Order& order : orders) {
    Factored alone(MPI_COMM_SELF, order);
    Factored factored(MPI_COMM_WORLD, order);
    EXPECT_EQ(fingerprint(factored.memory, factored.blocks), fingerprint(alone.memory, alone.blocks)) << order.n;
    EXPECT_LT(residual(factored.memory, factored.blocks), 2);
    const std::vector<double> expected = textbook_factors(order.n);
    const auto n = static_cast<std::size_t>(order.n);
    const std::size_t size = factored.blocks.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t offset = factored.blocks.offset(factored.memory, i / size, j / size);
        const auto* const block =
            reinterpret_cast<const double*>(factored.memory.read(offset, factored.blocks.bytes()));
        ASSERT_NEAR(block[i % size * size + j % size], expected[i * n + j], 1e-13 * static_cast<double>(n))
            << order.n << ' ' << order.block << ": " << i << ' ' << j;
      }
    }
  }
}

TEST(SharedLu, HasALargeResidualWhereOneFactorIsWrong) {
  Factored factored(MPI_COMM_WORLD, {20, 3, small_page_bytes});
  const std::size_t offset = factored.blocks.offset(factored.memory, 2, 5);
  if (factored.memory.is_home(offset)) *reinterpret_cast<double*>(factored.memory.own(offset)) += 1e-9;
  EXPECT_GT(residual(factored.memory, factored.blocks), 16);
}

TEST(SharedLu, GivesEachBlockToOneRankAndAPlaceOfItsOwn) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const Blocks blocks(100, 8, ranks);
    EXPECT_EQ(blocks.rows_of_ranks() * blocks.columns_of_ranks(), static_cast<std::size_t>(ranks));
    const std::size_t most = blocks.pages_of_each(small_page_bytes) * small_page_bytes / blocks.bytes();
    std::vector<int> taken(static_cast<std::size_t>(ranks) * most);
    for (std::size_t row = 0; row < blocks.along(); ++row) {
      for (std::size_t column = 0; column < blocks.along(); ++column) {
        ASSERT_LT(blocks.slot(row, column), most);
        const std::size_t place = static_cast<std::size_t>(blocks.owner(row, column)) * most + blocks.slot(row, column);
        EXPECT_EQ(++taken[place], 1);
      }
    }
  }
  EXPECT_EQ(operations(2), 3);  // a quotient, a product and a difference
}

// The ray tracer.

TEST(SharedScene, HasEverySphereOnItsParentAboveTheFloorAndWithinReach) {
  for (std::int64_t levels = 1; levels <= 5; ++levels) {
    const std::vector<Sphere> scene = make_scene(levels);
    ASSERT_EQ(scene.size(), sphere_count(levels));
    std::vector<int> parents(scene.size());
    for (const Sphere& parent : scene) {
      EXPECT_GT(parent.centre.z - parent.radius, 0);
      for (std::int32_t i = 0; i < parent.children; ++i) {
        const auto child = static_cast<std::size_t>(parent.first_child + i);
        const Vector apart = scene[child].centre - parent.centre;
        EXPECT_DOUBLE_EQ(std::sqrt(dot(apart, apart)), parent.radius + scene[child].radius);
        EXPECT_LE(std::sqrt(dot(apart, apart)) + scene[child].reach, parent.reach + 1e-12);
        ++parents[child];
      }
    }
    EXPECT_EQ(parents[0], 0);
    EXPECT_TRUE(std::all_of(parents.begin() + 1, parents.end(), [](int count) { return count == 1; }));
  }
  EXPECT_EQ(sphere_count(1), 1U);
  EXPECT_EQ(sphere_count(4), 187U);
}

TEST(SharedTracer, MeetsWithTheTreeWhatItMeetsWithoutIt) {
  const Picture picture{.size = 24, .levels = 3, .samples = 1, .bounces = 3};
  const std::vector<Sphere> scene = make_scene(picture.levels);
  std::vector<Sphere> without_tree = scene;
  for (Sphere& sphere : without_tree) sphere.reach = 1e6;  // every ray comes near everything
  const Image expected = expected_image(MPI_COMM_WORLD, picture, without_tree);
  const Image found = expected_image(MPI_COMM_WORLD, picture, scene);
  EXPECT_EQ(found.checksum, expected.checksum);
  EXPECT_EQ(found.rays, expected.rays);
  EXPECT_GT(found.rays, 2 * picture.size * picture.size);
}

struct Drawn {
  Drawn(const Picture& picture, std::size_t bytes_of_page)
      : memory(MPI_COMM_WORLD, picture.pages_of_each(bytes_of_page, Factored::size_of(MPI_COMM_WORLD)), bytes_of_page,
               Placement::turns),
        queues(MPI_COMM_WORLD) {
    fill(memory, make_scene(picture.levels));
    own = trace(memory, queues, picture);
  }
  Memory memory;
  Counters queues;
  Traced own;
};

std::int64_t sum_of(std::int64_t number) {
  MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return number;
}

TEST(SharedRaytrace, DrawsOnAnyRanksAndPagesTheImageOfARankAlone) {
  const Picture pictures[] = {{.size = 40, .levels = 3, .samples = 2, .bounces = 4}, {1, 1, 1, 0}};
  for (const Picture& picture : pictures) {
    const Image alone = expected_image(MPI_COMM_SELF, picture, make_scene(picture.levels));
    Drawn drawn(picture, picture.size > 1 ? 256 : 4096);
    EXPECT_EQ(checksum(drawn.memory, picture), alone.checksum) << picture.size;
    EXPECT_EQ(sum_of(drawn.own.rays), alone.rays);
    EXPECT_EQ(sum_of(drawn.own.tiles), picture.tiles());
    EXPECT_LE(drawn.own.tiles_of_others, drawn.own.tiles);
  }
}

TEST(SharedRaytrace, KnowsAnImageWithOnePixelChangedOrMissing) {
  const Picture picture{.size = 20, .levels = 2, .samples = 1, .bounces = 1};
  Drawn drawn(picture, small_page_bytes);
  const std::uint64_t right = checksum(drawn.memory, picture);
  const std::size_t offset = picture.image_offset(small_page_bytes) + 8;
  std::uint32_t pixel = 0;
  if (drawn.memory.is_home(offset)) std::memcpy(&pixel, drawn.memory.own(offset), sizeof pixel);
  for (const std::uint32_t other : {pixel ^ 1U, 0U}) {
    if (drawn.memory.is_home(offset)) std::memcpy(drawn.memory.own(offset), &other, sizeof other);
    EXPECT_NE(checksum(drawn.memory, picture), right);
  }
}

}  // namespace
}  // namespace fabricbench::shared

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
