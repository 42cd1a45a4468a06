// All layers: how each one's end of a path is opened, and how its receivers may wait.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "probe/endpoint.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

struct LayerEntry {
  Layer layer;
  bool is_local;   // one rank by itself; its endpoint belongs to one cell
  bool has_flows;  // tells parallel flows between two ranks apart
  std::vector<std::string> parameters;
  /// How its receivers wait when the plan asks for `wanted`; a Failure where they cannot.
  Receive (*receive)(Receive wanted);
  std::unique_ptr<Endpoint> (*open)(const Site& site, const PlanProbe& probe);
};

const LayerEntry& layer_entry(Layer layer);

}  // namespace fabricbench
