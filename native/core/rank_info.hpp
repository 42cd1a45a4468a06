// Who a rank is and where it runs, as the header of every record tells (RankInfo in src/fabricbench/record/lines.py).
#pragma once

#include <mpi.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/interface.hpp"

namespace fabricbench {

std::string host_name();

/// What tells machines apart, whatever their hosts are called in containers or a lab: the boot of their kernel.
std::string machine_name();

/// The rank, its host, its process and the processors that it may run on.
nlohmann::json rank_info(int rank);

/// The same with the interface that leads into the fabric under test, where there is one.
nlohmann::json rank_info(int rank, const std::optional<Interface>& interface);

/// What the MPI library says of itself, its first line.
std::string mpi_library();

/// Whether there is a processor for each thread of the communicator's ranks where this rank may run, `threads` of them
/// its own: then nobody loses one to a rank that waits spinning. Where the kernel does not tell the processors of a
/// rank beside it, there is not. Collective.
bool has_own_processors(MPI_Comm communicator, int threads);

}  // namespace fabricbench
