// Requests whose buffers MPI still owns when the one who posted them is gone. A send is never cancelled: MPICH 5 waits
// for ever for a cancelled one of 64 MB that nobody receives. Its buffer lives on here until it is complete, and a
// process that ends before leaves by MPI_Abort, because MPI_Finalize would wait.
#pragma once

#include <mpi.h>

#include <memory>

namespace fabricbench {

/// Keep what a request reads or writes until it is complete. Returns at once.
void set_aside(MPI_Request request, std::shared_ptr<const void> buffer);

/// Take back a receive that nobody will send to; kept like any other where its message is already on its way.
void take_back_receive(MPI_Request request, std::shared_ptr<const void> buffer);

/// Let go of what is complete; whether anything is left.
bool has_set_aside();

}  // namespace fabricbench
