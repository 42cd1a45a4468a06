#include "probe/open.hpp"
#include "transport/tcp.hpp"

namespace fabricbench {

std::unique_ptr<Endpoint> open_tcp(const Site& site, const PlanProbe& probe) {
  return open_socket_layer<Tcp>(site, probe);
}

}  // namespace fabricbench
