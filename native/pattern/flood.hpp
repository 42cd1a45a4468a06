// Patterns in which all channels carry as much as they can for a while.
#pragma once

#include <span>

#include "core/failure.hpp"
#include "core/measurement.hpp"
#include "pattern/channels.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

template <Transport T>
Outcome flood(std::span<LinkOver<T>>, Task&) {
  throw Failure(FailureCode::unsupported, "not there yet");
}

}  // namespace fabricbench
