// Steps of training without their program: the schedule beside what the papers say, on no rank at all, and the traffic
// on however many ranks run this.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/frame/level.hpp"
#include "kernel/frame/profile.hpp"
#include "kernel/training/exchange.hpp"
#include "kernel/training/schedule.hpp"

namespace fabricbench::kernel {
constinit const std::string_view compiled_level = "native";  // a program of one level: it never becomes another
constinit const bool has_one_level = true;
}  // namespace fabricbench::kernel

namespace fabricbench::training {
namespace {

Dimensions small_model() {
  return {.layers = 4,
          .hidden = 12,
          .sequence = 5,
          .layer_parameters = 1000,
          .embedding_parameters = 300,
          .head_parameters = 77,
          .micro_batch = 2,
          .micro_batches = 3,
          .bucket_bytes = 512,
          .element_bytes = 2,
          .layer_ns = 20'000,
          .head_ns = 10'000};
}

/// With six experts of 90 parameters in each layer, two for each token.
Dimensions with_experts() {
  Dimensions model = small_model();
  model.experts = 6;
  model.expert_parameters = 90;
  model.experts_per_token = 2;
  return model;
}

/// "F" where a stage begins a micro-batch forward, "B" where it begins one backward: by what it gets from where.
std::string order_of(const Step& step, bool is_last) {
  std::string order;
  for (const Instruction& each : step.instructions) {
    if (each.act == Act::receive_activations) order += "F";
    if (each.act == (is_last ? Act::send_gradients : Act::receive_gradients)) order += "B";
  }
  return order;
}

TEST(TrainingSchedule, IsOneForwardOneBackwardBehindAWarmUpOfTheStagesBehind) {
  Dimensions model = small_model();
  model.micro_batches = 5;
  const Grid grid{.data = 1, .tensor = 1, .pipeline = 4};
  EXPECT_EQ(order_of(make_step(model, grid, 1), false), "FFFBFBFBBB");
  EXPECT_EQ(order_of(make_step(model, grid, 2), false), "FFBFBFBFBB");
  EXPECT_EQ(order_of(make_step(model, grid, 3), true), "FBFBFBFBFB");
}

TEST(TrainingSchedule, HasAWarmUpOfNoMoreMicroBatchesThanThereAre) {
  Dimensions model = small_model();
  model.micro_batches = 2;
  EXPECT_EQ(order_of(make_step(model, {.data = 1, .tensor = 1, .pipeline = 4}, 1), false), "FFBB");
}

TEST(TrainingSchedule, ReducesTheLastLayersFirstAndWhileThoseBeforeAreComputed) {
  Dimensions model = small_model();
  model.bucket_bytes = 2 * 1000;
  const Step step = make_step(model, {.data = 2, .tensor = 1, .pipeline = 1}, 0);
  // 77 of the head and 1000 of the last layer are ready first: a bucket of 1000, 77 left.
  std::vector<std::uint64_t> computed_before;
  std::uint64_t computed = 0;
  for (const Instruction& each : step.instructions) {
    if (each.act == Act::compute) computed += each.value;
    if (each.act == Act::reduce_bucket) computed_before.push_back(step.computing_ns() - computed);
  }
  EXPECT_EQ(computed_before, (std::vector<std::uint64_t>{120'000, 80'000, 40'000, 0, 0}));
  EXPECT_EQ(step.buckets.front(), (Bucket{.begin = 0, .elements = 1000}));
  EXPECT_EQ(step.buckets.back(), (Bucket{.begin = 4000, .elements = 377}));
}

TEST(TrainingSchedule, ComputesThreeTimesAForwardPassOfEachLayerAndOfTheHead) {
  const Dimensions model = small_model();
  EXPECT_EQ(make_step(model, {}, 0).computing_ns(), 3U * 3U * (4 * 20'000U + 10'000U));
  std::uint64_t both = 0;
  for (const int stage : {0, 1})
    both += make_step(model, {.data = 1, .tensor = 1, .pipeline = 2}, stage).computing_ns();
  EXPECT_EQ(both, 3U * 3U * (4 * 20'000U + 10'000U));
}

TEST(TrainingSchedule, WithoutTrafficComputesAsLongAndWithoutComputingSendsAsMuch) {
  const Grid grid{.data = 2, .tensor = 2, .pipeline = 2};
  const Step step = make_step(with_experts(), grid, 0);
  Step without_traffic;
  without_traffic.instructions = step.without_traffic();
  EXPECT_EQ(without_traffic.computing_ns(), step.computing_ns());
  EXPECT_FALSE(std::ranges::any_of(without_traffic.instructions,
                                   [](const Instruction& each) { return each.act == Act::reduce_activations; }));
  std::vector<Instruction> others = step.instructions;
  std::erase_if(others, [](const Instruction& each) { return each.act == Act::compute; });
  EXPECT_EQ(step.without_computing(), others);
}

TEST(TrainingSchedule, ScalesSizesAndTimesAndLeavesTheNumberOfMessages) {
  Dimensions model = with_experts();
  const Grid grid{.data = 3, .tensor = 2, .pipeline = 1};
  const Step whole = make_step(model, grid, 0);
  model.scale = 8;
  const Step scaled = make_step(model, grid, 0);
  EXPECT_EQ(scaled.instructions.size(), whole.instructions.size());
  EXPECT_EQ(scaled.computing_ns(), whole.computing_ns() / 8);
  EXPECT_EQ(sizes_of(model, grid).layer, 63U);  // 1000 / 2 / 8, rounded up
  EXPECT_EQ(sizes_of(model, grid).activations, 15U);
}

TEST(TrainingGrid, NumbersTensorGroupsNextToEachOtherThenDataThenStages) {
  const Grid grid{.data = 2, .tensor = 2, .pipeline = 2};
  const Place place = place_of(grid, 6);
  EXPECT_EQ(place.tensor, 0);
  EXPECT_EQ(place.data, 1);
  EXPECT_EQ(place.stage, 1);
  for (int rank = 0; rank < grid.ranks(); ++rank) EXPECT_EQ(rank_at(grid, place_of(grid, rank)), rank);
}

TEST(TrainingGrid, SharesExpertsAmongAsManyReplicasAsDivideBoth) {
  EXPECT_EQ(expert_group(with_experts(), {.data = 4}), 2);
  EXPECT_EQ(expert_group(with_experts(), {.data = 3}), 3);
  EXPECT_EQ(expert_group(small_model(), {.data = 4}), 1);
}

TEST(TrainingContent, DiffersWhereAMemberIsMissingOrSummedTwice) {
  for (std::size_t i = 0; i < 1000; ++i) {
    std::uint16_t sum = 0;
    for (int member = 0; member < 5; ++member)
      sum = static_cast<std::uint16_t>(sum + element_of<std::uint16_t>(member, 9, i));
    EXPECT_EQ(sum, sum_of<std::uint16_t>(5, 9, i));
    EXPECT_NE(static_cast<std::uint16_t>(sum - element_of<std::uint16_t>(2, 9, i) + element_of<std::uint16_t>(3, 9, i)),
              sum_of<std::uint16_t>(5, 9, i));
  }
}

struct Here {
  Here() {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  int ranks = 1;
  int rank = 0;
};

/// Grids of these ranks with and without each kind of group: of two, and data groups of all that is left.
std::vector<Grid> grids(int ranks) {
  std::vector<Grid> all;
  for (const int tensor : {1, 2}) {
    for (const int pipeline : {1, 2}) {
      if (ranks % (tensor * pipeline) == 0) all.push_back({ranks / (tensor * pipeline), tensor, pipeline});
    }
  }
  return all;
}

double bytes_of(std::string_view name) {
  const auto index =
      static_cast<std::size_t>(std::ranges::find(kernel::counted_calls, name) - kernel::counted_calls.begin());
  auto bytes = static_cast<double>(kernel::counts().calls[index].bytes);
  MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return bytes;
}

template <class Element>
void expect_right_steps(Dimensions model, const Grid& grid) {
  SCOPED_TRACE(std::to_string(grid.data) + "x" + std::to_string(grid.tensor) + "x" + std::to_string(grid.pipeline));
  model.element_bytes = sizeof(Element);
  Exchange<Element> exchange(MPI_COMM_WORLD, model, grid, Here().rank);
  kernel::reset_counts();
  kernel::TimedSection timed(MPI_COMM_WORLD);
  exchange.template walk<Everywhere>(exchange.step().instructions, true);
  timed.end();
  const Bytes expected = expected_bytes(model, grid);
  EXPECT_EQ(bytes_of("MPI_Iallreduce"), expected.gradients);
  EXPECT_EQ(bytes_of("MPI_Allreduce"), expected.tensor);
  EXPECT_EQ(bytes_of("MPI_Isend"), expected.pipeline);
  EXPECT_EQ(bytes_of("MPI_Alltoall"), expected.experts);
  // Between whole steps those without a part, as the program takes them: messages keep their numbers.
  exchange.template walk<AtThreePlaces>(exchange.step().without_traffic(), false);
  exchange.template walk<AtThreePlaces>(exchange.step().without_computing(), true);
  exchange.template walk<Everywhere>(exchange.step().instructions, true);
  EXPECT_FALSE(exchange.differs());
  EXPECT_EQ(exchange.wrong().gradients, 0);
  EXPECT_EQ(exchange.wrong().activations, 0);
  EXPECT_EQ(exchange.wrong().tokens, 0);
  EXPECT_EQ(exchange.wrong().stages, 0);
}

TEST(TrainingTraffic, IsRightInEveryElementOnEveryGridAndAsMuchAsTheFormulaSays) {
  // Few blocking calls: here ranks that share processors take turns by the scheduler's time slices.
  Dimensions model = with_experts();
  model.layers = 2;
  model.micro_batches = 2;
  for (const Grid& grid : grids(Here().ranks)) expect_right_steps<std::uint16_t>(model, grid);
  model.experts = 0;
  expect_right_steps<std::uint32_t>(model, {.data = Here().ranks});
}

TEST(TrainingTraffic, MovesWhileTheAcceleratorIsBusy) {
  const Here here;
  if (here.ranks == 1) GTEST_SKIP() << "one rank has no traffic";
  Dimensions model = small_model();
  model.micro_batches = 1;
  model.layer_parameters = 100'000;  // beyond what MPI sends without an answer
  model.bucket_bytes = 200'000;
  model.embedding_parameters = 0;
  const Grid grid{.data = here.ranks};
  Exchange<std::uint16_t> exchange(MPI_COMM_WORLD, model, grid, here.rank);
  // All gradients at once, and then a load that is far longer than they take.
  std::vector<Instruction> instructions = exchange.step().without_computing();
  instructions.push_back({Act::compute, 1'000'000'000});
  exchange.walk<Everywhere>(instructions, true);
  EXPECT_EQ(exchange.ended_meanwhile(), exchange.step().buckets.size());
  EXPECT_EQ(exchange.wrong().gradients, 0);
}

}  // namespace
}  // namespace fabricbench::training

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
