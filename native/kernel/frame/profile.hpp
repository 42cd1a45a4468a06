// Where the time of a timed section goes: each rank's seconds in MPI, by kind of call, and what it sends, by size of
// message.
//
//   profile.cpp        the counts of this rank, their sums over all ranks, and the timed section that switches them on
//   profile_calls.cpp  MPI's functions as the kernels meet them: each counts, then calls its PMPI twin
//
// Bytes are those that a rank hands to MPI for other ranks, each once: what a collective operation means and not what
// an algorithm makes of it. A broadcast counts at its root, a reduction at all others, an all-to-all as a message for
// each of them, a one-sided access at the rank that makes it, whichever way its bytes go. A rank alone sends nothing.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/traffic.hpp"

namespace fabricbench::kernel {

/// Every call that is counted. One that is not here fails to compile in profile_calls.cpp; a test compares the list
/// with what the kernels call.
inline constexpr std::array<std::string_view, 48> counted_calls{"MPI_Allgather",
                                                                "MPI_Allgatherv",
                                                                "MPI_Allreduce",
                                                                "MPI_Alltoall",
                                                                "MPI_Alltoallv",
                                                                "MPI_Alltoallw",
                                                                "MPI_Barrier",
                                                                "MPI_Bcast",
                                                                "MPI_Exscan",
                                                                "MPI_Fetch_and_op",
                                                                "MPI_Gather",
                                                                "MPI_Gatherv",
                                                                "MPI_Get",
                                                                "MPI_Iallgather",
                                                                "MPI_Iallreduce",
                                                                "MPI_Ialltoall",
                                                                "MPI_Ialltoallv",
                                                                "MPI_Ibarrier",
                                                                "MPI_Ibcast",
                                                                "MPI_Iprobe",
                                                                "MPI_Irecv",
                                                                "MPI_Ireduce",
                                                                "MPI_Isend",
                                                                "MPI_Issend",
                                                                "MPI_Probe",
                                                                "MPI_Put",
                                                                "MPI_Recv",
                                                                "MPI_Reduce",
                                                                "MPI_Reduce_scatter",
                                                                "MPI_Rsend",
                                                                "MPI_Scan",
                                                                "MPI_Scatter",
                                                                "MPI_Scatterv",
                                                                "MPI_Send",
                                                                "MPI_Sendrecv",
                                                                "MPI_Ssend",
                                                                "MPI_Reduce_scatter_block",
                                                                "MPI_Sendrecv_replace",
                                                                "MPI_Test",
                                                                "MPI_Testall",
                                                                "MPI_Testany",
                                                                "MPI_Testsome",
                                                                "MPI_Wait",
                                                                "MPI_Waitall",
                                                                "MPI_Waitany",
                                                                "MPI_Waitsome",
                                                                "MPI_Win_flush",
                                                                "MPI_Win_flush_all"};

/// A bin for no bytes, then one for each power of two: bin k holds sizes from 2^(k-1) to 2^k - 1.
inline constexpr std::size_t size_bins = 65;
constexpr std::uint64_t smallest_in(std::size_t bin) { return bin == 0 ? 0 : std::uint64_t{1} << (bin - 1); }
constexpr std::uint64_t largest_in(std::size_t bin) { return bin == 0 ? 0 : smallest_in(bin) * 2 - 1; }

struct CallTotal {
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;
};

/// What this rank has counted. Plain numbers only: whoever counts allocates nothing.
struct Counts {
  bool is_on = false;
  std::uint64_t section_ns = 0;
  std::array<CallTotal, counted_calls.size()> calls{};
  std::array<std::uint64_t, size_bins> message_sizes{};
};

/// The counts of this rank; one set, because MPI's functions take no argument that could carry another.
Counts& counts();

/// Forget everything, before a run.
void reset_counts();

/// What one rank did in its timed section.
struct RankShare {
  double section_seconds = 0;
  double mpi_seconds = 0;
  double bytes_sent = 0;
  double compute_seconds() const { return section_seconds > mpi_seconds ? section_seconds - mpi_seconds : 0; }
};

/// All ranks together; `calls` and `message_sizes` are sums over them.
struct Profile {
  std::vector<RankShare> ranks;
  std::array<CallTotal, counted_calls.size()> calls{};
  std::array<std::uint64_t, size_bins> message_sizes{};
  /// What the interfaces of rank 0's host carried in the timed sections since `reset_counts`, and those of the ranks'
  /// other hosts: proves which way a run took. Read outside the time that counts.
  Traffic interfaces;
  HostTraffic other_hosts{};
};

/// The profile on rank 0, an empty one on the others. Collective.
Profile gather_profile(MPI_Comm communicator);

}  // namespace fabricbench::kernel
