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

/// MPI counts and displaces in ints.
void check_count(std::size_t elements, int blocks) {
  const auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (elements <= most / static_cast<std::size_t>(std::max(blocks, 1))) return;
  throw Failure(FailureCode::unsupported, std::to_string(blocks) + " blocks of " + std::to_string(elements) +
                                              " elements are more than MPI's int counts: use smaller messages");
}

MPI_Comm make_grid(MPI_Comm communicator, Shape& shape) {
  MPI_Comm grid = MPI_COMM_NULL;
  constexpr std::array<int, 2> is_periodic{1, 1};
  std::array<int, 2> sides{};
  check_mpi(MPI_Dims_create(shape.ranks, 2, sides.data()), "MPI_Dims_create");
  check_mpi(MPI_Cart_create(communicator, 2, sides.data(), is_periodic.data(), 0, &grid), "MPI_Cart_create");
  MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN);
  shape.grid = sides;
  for (int dimension = 0; dimension < 2; ++dimension) {
    int* const pair = shape.neighbours.data() + 2 * dimension;
    check_mpi(MPI_Cart_shift(grid, dimension, 1, pair, pair + 1), "MPI_Cart_shift");
  }
  return grid;
}

Shape shape_of(MPI_Comm communicator) {
  Shape shape;
  MPI_Comm_size(communicator, &shape.ranks);
  MPI_Comm_rank(communicator, &shape.rank);
  return shape;
}

std::size_t bytes_of(int blocks, std::size_t block_bytes) { return static_cast<std::size_t>(blocks) * block_bytes; }

}  // namespace

CollectiveMemory::CollectiveMemory(MPI_Comm communicator, const PlanProbe& probe, CollectiveKind kind, bool on_grid,
                                   Sizes sizes)
    : block_bytes_(checked_block(probe, kind)),
      shape_(shape_of(communicator)),
      blocks_(sizes(shape_)),
      send_(bytes_of(blocks_.sent, block_bytes_)),
      receive_(bytes_of(blocks_.received, block_bytes_)) {
  const std::size_t elements = elements_of(block_bytes_, kind);
  const int blocks = std::max({shape_.ranks, blocks_.sent, blocks_.received});
  check_count(elements, blocks);
  for (int i = 0; i < blocks; ++i) {
    counts_.push_back(static_cast<int>(elements));
    displacements_.push_back(i * static_cast<int>(elements));
  }
  if (on_grid) grid_ = make_grid(communicator, shape_);
  operands_ = {.communicator = on_grid ? grid_ : communicator,
               .send = send_.data(),
               .receive = receive_.data(),
               .either = shape_.is_root() ? send_.data() : receive_.data(),
               .count = static_cast<int>(elements),
               .type = kind == CollectiveKind::sums ? MPI_DOUBLE : MPI_BYTE,
               .counts = counts_.data(),
               .displacements = displacements_.data()};
}

CollectiveMemory::~CollectiveMemory() {
  if (grid_ != MPI_COMM_NULL) MPI_Comm_free(&grid_);
}

}  // namespace fabricbench
