#include "probe/open.hpp"
#include "transport/udp.hpp"

namespace fabricbench {

std::unique_ptr<Endpoint> open_udp(const Site& site, const PlanProbe& probe) {
  return open_socket_layer<Udp>(site, probe);
}

}  // namespace fabricbench
