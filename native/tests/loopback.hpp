// Where tests open paths of sockets: this machine's loopback.
#pragma once

#include "transport/device.hpp"

namespace fabricbench {

inline Attachment over_the_loopback() {
  Attachment attachment;
  attachment.interface = find_interface("lo", std::nullopt);
  return attachment;
}

}  // namespace fabricbench
