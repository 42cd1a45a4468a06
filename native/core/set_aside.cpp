#include "core/set_aside.hpp"

#include <utility>
#include <vector>

namespace fabricbench {
namespace {

struct Kept {
  MPI_Request request;
  std::shared_ptr<const void> buffer;
};

/// Never destroyed: what is left when the process ends, MPI may still be reading.
std::vector<Kept>& all_kept() {
  static auto* const kept = new std::vector<Kept>;
  return *kept;
}

}  // namespace

void set_aside(MPI_Request request, std::shared_ptr<const void> buffer) {
  has_set_aside();
  if (request != MPI_REQUEST_NULL) all_kept().push_back({request, std::move(buffer)});
}

void take_back_receive(MPI_Request request, std::shared_ptr<const void> buffer) {
  if (request == MPI_REQUEST_NULL) return;
  MPI_Cancel(&request);
  set_aside(request, std::move(buffer));
}

bool has_set_aside() {
  std::erase_if(all_kept(), [](Kept& kept) {
    int is_done = 0;
    return MPI_Test(&kept.request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS || is_done != 0;
  });
  return !all_kept().empty();
}

}  // namespace fabricbench
