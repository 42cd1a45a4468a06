// What a cell tells layer rdma, by the table of parameters.
#pragma once

#include "core/parameters.hpp"
#include "rdma/parameters.hpp"

namespace fabricbench {

inline RdmaParameters rdma_parameters(const PlanProbe& probe) {
  return {.depth = whole_layer_parameter(probe, "depth"),
          .moderation = whole_layer_parameter(probe, "moderation"),
          .inline_bytes = whole_layer_parameter(probe, "inline_bytes"),
          .mtu = whole_layer_parameter(probe, "mtu"),
          .traffic_class = static_cast<unsigned>(whole_layer_parameter(probe, "traffic_class")),
          .service_level = static_cast<unsigned>(whole_layer_parameter(probe, "service_level")),
          .timeout = static_cast<unsigned>(whole_layer_parameter(probe, "timeout")),
          .retry_count = static_cast<unsigned>(whole_layer_parameter(probe, "retry_count"))};
}

}  // namespace fabricbench
