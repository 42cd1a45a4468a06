// A collective call on known buffers: what every collective is described by, and the memory that it works on. A
// collective is a struct (rooted.hpp, exchanged.hpp, reductions.hpp, neighbourhood.hpp) with
//
//   name              of the call
//   kind              moves blocks of bytes, or sums vectors of doubles
//   on_grid           true where its communicator is a periodic 2-D grid, else left out
//   sizes(shape)      how many blocks it sends and receives on a rank, and how many count (operation.hpp)
//   arguments(operands)
//   call, start, init the blocking, the nonblocking and the persistent call with them (FABRICBENCH_CALLS)
//   origin(shape, i)  of moves: which rank's which block the received block i is
//   result(shape)     of sums: how many ranks are in the sum, and which block of their vectors it is
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

#include "core/measurement.hpp"
#include "core/message_buffer.hpp"

// Persistent collectives came with MPI 4; an older library's header does not even name them.
#if MPI_VERSION >= 4
#define FABRICBENCH_MPI4(call) (call)
#else
#define FABRICBENCH_MPI4(call) (static_cast<void>(operands), static_cast<void>(request), MPI_ERR_OTHER)
#endif

// What a collective is called with is the same in all three modes: `arguments(operands)`, then what the mode adds.
#define FABRICBENCH_CALLS(blocking, nonblocking, persistent)                                              \
  static int call(const Operands& operands) { return std::apply(blocking, arguments(operands)); }         \
  static int start(const Operands& operands, MPI_Request* request) {                                      \
    return std::apply(nonblocking, std::tuple_cat(arguments(operands), std::tuple(request)));             \
  }                                                                                                       \
  static int init(const Operands& operands, MPI_Request* request) {                                       \
    return FABRICBENCH_MPI4(                                                                              \
        std::apply(persistent, std::tuple_cat(arguments(operands), std::tuple(MPI_INFO_NULL, request)))); \
  }

namespace fabricbench {

inline constexpr bool has_mpi4 = MPI_VERSION >= 4;
inline constexpr int root = 0;

enum class CollectiveKind { moves, sums };

/// A rank's place in a cell, and on the periodic grid if the collective has one.
struct Shape {
  int ranks = 1;
  int rank = 0;
  std::array<int, 2> grid{1, 1};
  std::array<int, 4> neighbours{};  // one step down and up in each dimension, in MPI's order

  bool is_root() const { return rank == root; }
};

struct BlockCounts {
  int sent = 0;
  int received = 0;
  int counted = 0;  // of the algorithm's bytes
};

/// Where a received block comes from. `other_block` is the same but on a grid that is so narrow that both neighbours
/// of a dimension are one rank: which of its two blocks comes first is up to the library (MPI 4.1 settled it).
struct Origin {
  int source = 0;
  int block = 0;
  int other_block = 0;
};

struct Summed {
  int first_ranks = 0;  // so many ranks from the first on are in the sum; with none, nothing is defined
  int block = 0;
};

/// The arguments of a call, computed beforehand.
struct Operands {
  MPI_Comm communicator = MPI_COMM_NULL;
  const void* send = nullptr;
  void* receive = nullptr;
  void* either = nullptr;  // of a broadcast: what the root sends and the others receive
  int count = 0;           // elements in a block
  MPI_Datatype type = MPI_BYTE;
  const int* counts = nullptr;
  const int* displacements = nullptr;
};

/// A Failure where MPI cannot count so many blocks of so many elements: it counts those of a block in an int, whatever
/// all blocks are together, and so it displaces blocks, where it is told of displacements at all.
void check_counts(int blocks, std::size_t elements, bool is_displaced);

/// The buffers of a collective on this rank, its place among the others, and the grid.
class CollectiveMemory {
 public:
  using Sizes = BlockCounts (*)(const Shape&);

  /// A Failure where the call cannot carry such messages.
  CollectiveMemory(MPI_Comm communicator, const Task& task, CollectiveKind kind, Sizes sizes, bool is_displaced);
  CollectiveMemory(const CollectiveMemory&) = delete;
  CollectiveMemory& operator=(const CollectiveMemory&) = delete;

  /// Collective: the calls will be of a periodic grid of the ranks.
  void make_grid();
  /// Collective as well; nothing where there is none.
  void free_grid();

  /// They stay where they are.
  const Operands& operands() const { return operands_; }
  const Shape& shape() const { return shape_; }
  BlockCounts blocks() const { return blocks_; }
  std::size_t counted_bytes() const { return static_cast<std::size_t>(blocks_.counted) * block_bytes_; }
  std::span<std::byte> sent() { return send_.span(); }
  std::span<std::byte> received() { return receive_.span(); }
  std::span<std::byte> sent_block(int i) { return block(send_, i); }
  std::span<std::byte> received_block(int i) { return block(receive_, i); }
  std::size_t block_elements() const { return static_cast<std::size_t>(operands_.count); }

 private:
  std::span<std::byte> block(MessageBuffer& buffer, int i) const {
    return buffer.span().subspan(static_cast<std::size_t>(i) * block_bytes_, block_bytes_);
  }

  std::size_t block_bytes_;
  MPI_Comm grid_ = MPI_COMM_NULL;
  Shape shape_;
  BlockCounts blocks_;
  MessageBuffer send_;
  MessageBuffer receive_;
  std::vector<int> counts_;
  std::vector<int> displacements_;
  Operands operands_;
};

}  // namespace fabricbench
