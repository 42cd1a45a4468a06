#include "probe/open.hpp"
#include "transport/frame.hpp"

namespace fabricbench {

std::unique_ptr<Endpoint> open_frame(const Site& site, const PlanProbe& probe) {
  return open_socket_layer<Frame>(site, probe);
}

}  // namespace fabricbench
