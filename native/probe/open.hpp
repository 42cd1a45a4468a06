// How each network layer's end of a path is opened. A file each, because each compiles every pattern over its
// transport.
#pragma once

#include <memory>

#include "core/plan.hpp"
#include "probe/endpoint.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

std::unique_ptr<Endpoint> open_frame(const Site& site, const PlanProbe& probe);
std::unique_ptr<Endpoint> open_ip(const Site& site, const PlanProbe& probe);
std::unique_ptr<Endpoint> open_udp(const Site& site, const PlanProbe& probe);
std::unique_ptr<Endpoint> open_tcp(const Site& site, const PlanProbe& probe);
std::unique_ptr<Endpoint> open_mpi(const Site& site, const PlanProbe& probe);

/// A layer whose receivers sleep or spin, as the plan asks.
template <template <Receive> class T>
std::unique_ptr<Endpoint> open_socket_layer(const Site& site, const PlanProbe& probe) {
  if (probe.receive == Receive::polling) return std::make_unique<EndpointOver<T<Receive::polling>>>(site);
  return std::make_unique<EndpointOver<T<Receive::blocking>>>(site);
}

}  // namespace fabricbench
