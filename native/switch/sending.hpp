// How a send went.
#pragma once

namespace fabricbench::emulated_switch {

enum class Sending {
  done,
  later,    // the socket's buffer is full of frames that the receiving node's stack has not taken up yet
  refused,  // the interface is down, gone, or does not take frames
};

}  // namespace fabricbench::emulated_switch
