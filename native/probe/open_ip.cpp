#include "probe/open.hpp"
#include "transport/ip.hpp"

namespace fabricbench {

std::unique_ptr<Endpoint> open_ip(const Site& site, const PlanProbe& probe) {
  return open_socket_layer<Ip>(site, probe);
}

}  // namespace fabricbench
