#include "mpi_operation/collective.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "base/failure.hpp"
#include "mpi_operation/operation.hpp"

namespace fabricbench {
namespace {

std::size_t checked_block(const PlanProbe& probe, CollectiveKind kind) {
  const std::size_t bytes = probe.message_bytes;
  const bool is_sum = kind == CollectiveKind::sums;
  const PatternFacts& facts = facts_of(probe.pattern);
  if (!facts.has_size && bytes != 0) {
    throw Failure(FailureCode::unsupported, "a " + std::string(name_of(probe.pattern)) +
                                                " has no message: message_bytes must be 0, found " +
                                                std::to_string(bytes));
  }
  if (bytes < facts.smallest_message_bytes) {
    throw Failure(FailureCode::unsupported,
                  "message_bytes must be at least " + std::to_string(facts.smallest_message_bytes));
  }
  if (is_sum && bytes % sizeof(double) != 0) {
    throw Failure(FailureCode::unsupported,
                  "doubles are summed: message_bytes must be a multiple of 8, found " + std::to_string(bytes));
  }
  return bytes;
}

std::size_t elements_of(std::size_t bytes, CollectiveKind kind) {
  return kind == CollectiveKind::sums ? bytes / sizeof(double) : bytes;
}

int most_blocks(const Shape& shape, const BlockCounts& blocks) {
  return std::max({shape.ranks, blocks.sent, blocks.received});
}

/// The blocks, where MPI can count so many of so many elements.
BlockCounts checked_blocks(const Shape& shape, const BlockCounts& counts, std::size_t elements, bool is_displaced) {
  check_counts(most_blocks(shape, counts), elements, is_displaced);
  return counts;
}

Shape shape_of(MPI_Comm communicator) {
  Shape shape;
  MPI_Comm_size(communicator, &shape.ranks);
  MPI_Comm_rank(communicator, &shape.rank);
  return shape;
}

std::size_t bytes_of(int blocks, std::size_t block_bytes) { return static_cast<std::size_t>(blocks) * block_bytes; }

}  // namespace

void check_counts(int blocks, std::size_t elements, bool is_displaced) {
  const auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (elements > most) {
    throw Failure(FailureCode::unsupported, "a block of " + std::to_string(elements) +
                                                " elements is more than MPI's int counts: use smaller messages");
  }
  if (!is_displaced || elements <= most / static_cast<std::size_t>(std::max(blocks, 1))) return;
  throw Failure(
      FailureCode::unsupported,
      std::to_string(blocks) + " blocks of " + std::to_string(elements) +
          " elements are more than MPI's int displacements: use smaller messages, or the collective without a v");
}

CollectiveMemory::CollectiveMemory(MPI_Comm communicator, const Task& task, CollectiveKind kind, Sizes sizes,
                                   bool is_displaced)
    : block_bytes_(checked_block(task.probe, kind)),
      shape_(shape_of(communicator)),
      blocks_(checked_blocks(shape_, sizes(shape_), elements_of(block_bytes_, kind), is_displaced)),
      send_(task.allocate(bytes_of(blocks_.sent, block_bytes_))),
      receive_(task.allocate(bytes_of(blocks_.received, block_bytes_))) {
  const std::size_t elements = elements_of(block_bytes_, kind);
  const int blocks = most_blocks(shape_, blocks_);
  for (int i = 0; i < blocks; ++i) {
    counts_.push_back(static_cast<int>(elements));
    if (is_displaced) displacements_.push_back(i * static_cast<int>(elements));
  }
  operands_ = {.communicator = communicator,
               .send = send_.data(),
               .receive = receive_.data(),
               .either = shape_.is_root() ? send_.data() : receive_.data(),
               .count = static_cast<int>(elements),
               .type = kind == CollectiveKind::sums ? MPI_DOUBLE : MPI_BYTE,
               .counts = counts_.data(),
               .displacements = displacements_.data()};
}

void CollectiveMemory::make_grid() {
  constexpr std::array<int, 2> is_periodic{1, 1};
  std::array<int, 2> sides{};
  check_mpi(MPI_Dims_create(shape_.ranks, 2, sides.data()), "MPI_Dims_create");
  check_mpi(MPI_Cart_create(operands_.communicator, 2, sides.data(), is_periodic.data(), 0, &grid_), "MPI_Cart_create");
  MPI_Comm_set_errhandler(grid_, MPI_ERRORS_RETURN);
  shape_.grid = sides;
  for (int dimension = 0; dimension < 2; ++dimension) {
    int* const pair = shape_.neighbours.data() + 2 * dimension;
    check_mpi(MPI_Cart_shift(grid_, dimension, 1, pair, pair + 1), "MPI_Cart_shift");
  }
  operands_.communicator = grid_;
}

void CollectiveMemory::free_grid() {
  if (grid_ != MPI_COMM_NULL) MPI_Comm_free(&grid_);
}

}  // namespace fabricbench
