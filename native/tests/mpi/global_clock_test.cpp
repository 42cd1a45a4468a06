// The clocks are synchronised between cells, on the communicator of layer mpi: whatever a failed cell left there.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "core/clock_sync.hpp"
#include "core/control.hpp"
#include "transport/mpi.hpp"

namespace fabricbench {
namespace {

TEST(GlobalClock, TakesNoMessageOfAPathForAnAnswer) {
  const Control control;
  const int other = 1 - control.rank();
  MPI_Comm data = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &data);
  constexpr int flows = 256;
  constexpr std::uint32_t generations = 127;  // after which tags come in turn again
  std::array<std::byte, 64> left{};           // longer than what clocks say to each other
  const auto each_path = [&](auto use) {
    for (std::uint32_t generation = 0; generation < generations; ++generation) {
      for (int flow = 0; flow < flows; ++flow) {
        MpiPath path(Attachment{.interface = {}, .communicator = data},
                     Site{.peer_rank = other, .flow = flow, .generation = generation});
        use(path);
      }
    }
  };
  each_path([&](MpiPath& path) { path.send(left); });
  MPI_Barrier(data);

  const GlobalClock clock(control, data, "one clock of both ranks");

  EXPECT_TRUE(clock.is_one_clock());
  std::size_t kept = 0;
  each_path([&](MpiPath& path) {
    path.receive(left);
    ++kept;
  });
  EXPECT_EQ(kept, std::size_t{flows} * generations);
  MPI_Comm_free(&data);
}

}  // namespace
}  // namespace fabricbench
