// Messages of LU: the two ghost layers of U once a step, and what sweeps hand on from tile to tile, slot by slot.
#pragma once

#include <array>
#include <vector>

#include "kernel/npb/lu_tile.hpp"

namespace fabricbench::npb::ssor {

/// Fetch two ghost layers of U from the four neighbours; faces of the grid stay as they are. Collective.
class GhostExchange {
 public:
  explicit GhostExchange(const Tile& tile);
  void run(Field& u);

 private:
  void along_x(Field& u);
  void along_y(Field& u);

  Tile tile_;
  std::array<std::vector<double>, 2> sent_;
  std::array<std::vector<double>, 2> received_;
};

/// A train of equal messages from a neighbour, received ahead. Without a neighbour each message is zeros.
class Inbox {
 public:
  Inbox(MPI_Comm communicator, int source, int tag, std::size_t doubles);
  /// Expect a train of this many. All of the last have been taken.
  void start(int messages);
  /// Wait for the next message; it stays until the call after.
  const double* take();

 private:
  void post();
  static constexpr std::size_t depth = 2;
  MPI_Comm communicator_;
  int source_;
  int tag_;
  int to_post_ = 0;
  std::size_t posted_ = 0;
  std::size_t taken_ = 0;
  std::array<std::vector<double>, depth> buffers_;
  std::array<MPI_Request, depth> requests_;
};

/// A train of equal messages to a neighbour, sent without waiting for it.
class Outbox {
 public:
  Outbox(MPI_Comm communicator, int destination, int tag, std::size_t doubles);
  /// Where to write the next message.
  double* next();
  void send();
  /// Wait until all has been sent.
  void finish();

 private:
  static constexpr std::size_t depth = 4;
  MPI_Comm communicator_;
  int destination_;
  int tag_;
  std::size_t count_ = 0;
  std::array<std::vector<double>, depth> buffers_;
  std::array<MPI_Request, depth> requests_;
};

}  // namespace fabricbench::npb::ssor
