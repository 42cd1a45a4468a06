// Sending a panel from the column of the grid that factored it to all others, along each row, while they compute: who
// computes asks now and then how far it is.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel/hpl/layout.hpp"

namespace fabricbench::hpl {

enum class BroadcastKind {
  ring,           // from each rank to the next
  ring_modified,  // the same, but the root serves the next one apart, which factors the next panel and hands on nothing
  spread_roll,    // a part to each rank, then all parts around the ring: each link carries the message once
  library         // MPI_Ibcast, with the algorithm of the MPI
};
inline constexpr std::array<std::string_view, 4> broadcast_names{"ring", "ring-modified", "long", "mpi"};

class Broadcast {
 public:
  Broadcast(const Grid& grid, BroadcastKind kind);

  /// Begin to send these numbers, which the root has and the others get; until wait() nobody may touch them, and until
  /// finish() nobody may write to them. What this began before is finished.
  void start(double* numbers, std::int64_t size, int root);
  /// Hand on what has arrived; whether anything is still on its way, to this rank or from it.
  bool poll();
  /// Come back when all has arrived here.
  void wait();
  /// Come back when nobody needs the numbers of this rank any more.
  void finish();

 private:
  struct Part {
    int number;
    std::int64_t begin;
    std::int64_t size;
    int to;  // who gets it from here; MPI_PROC_NULL for nobody
  };
  void receive(const Part& part, int from);
  void send(const Part& part);
  /// MPI_Testsome or MPI_Waitsome.
  using FindSome = int(int, MPI_Request*, int*, int*, MPI_Status*);
  void hand_on(FindSome* find);
  void plan_ring(int from_root, int ring);
  void plan_ring_modified(int from_root, int ring);
  void plan_spread_roll(int from_root, int ring);

  MPI_Comm row_;
  int own_;
  int ranks_;
  BroadcastKind kind_;
  double* numbers_ = nullptr;
  std::int64_t size_ = 0;
  int root_ = 0;
  std::vector<Part> parts_;             // that are to arrive
  std::vector<MPI_Request> receiving_;  // one for each, or that of the library
  std::vector<MPI_Request> sending_;
  std::vector<int> arrived_;
  std::size_t waiting_ = 0;
};

}  // namespace fabricbench::hpl
