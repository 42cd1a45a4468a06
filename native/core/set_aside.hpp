// Requests whose buffers MPI still owns when the one who posted them is gone. A send is never cancelled: MPICH 5 waits
// for ever for a cancelled one of 64 MB that nobody receives. Its buffer lives on here until it is complete, and a
// process that ends before leaves by MPI_Abort, because MPI_Finalize would wait.
#pragma once

#include <mpi.h>

#include <memory>
#include <utility>
#include <vector>

namespace fabricbench {

struct SetAside {
  MPI_Request request;
  std::shared_ptr<const void> buffer;
};

/// Never destroyed: what is left when the process ends, MPI may still be reading.
inline std::vector<SetAside>& all_set_aside() {
  static auto* const all = new std::vector<SetAside>;
  return *all;
}

/// Let go of what is complete; whether anything is left.
inline bool has_set_aside() {
  std::erase_if(all_set_aside(), [](SetAside& one) {
    int is_done = 0;
    return MPI_Test(&one.request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS || is_done != 0;
  });
  return !all_set_aside().empty();
}

/// Keep what a request reads or writes until it is complete. Returns at once.
inline void set_aside(MPI_Request request, std::shared_ptr<const void> buffer) {
  has_set_aside();
  if (request != MPI_REQUEST_NULL) all_set_aside().push_back({request, std::move(buffer)});
}

/// Take back a receive that nobody will send to; kept like any other where its message is already on its way.
inline void take_back_receive(MPI_Request request, std::shared_ptr<const void> buffer) {
  if (request == MPI_REQUEST_NULL) return;
  MPI_Cancel(&request);
  set_aside(request, std::move(buffer));
}

}  // namespace fabricbench
