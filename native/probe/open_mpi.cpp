#include "probe/open.hpp"
#include "transport/mpi.hpp"

namespace fabricbench {

std::unique_ptr<Endpoint> open_mpi(const Site& site, const PlanProbe&) {
  return std::make_unique<EndpointOver<MpiPath>>(site);
}

}  // namespace fabricbench
