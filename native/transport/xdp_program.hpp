// The eBPF program that hands frames to AF_XDP sockets, by bpf(2) alone: what is at the interface, of the two types of
// layer frame and with the token of an open path, goes to the socket of that path; everything else goes on to the
// kernel's stack, so that other doors work at the same time. The kernel detaches it when the process ends, however it
// does: it hangs on a link (BPF_LINK_CREATE), which is a descriptor.
#pragma once

#include <cstdint>

#include "base/interface.hpp"
#include "base/socket.hpp"

namespace fabricbench {

/// Where the program runs: in the stack, for any driver; or in the driver, which must be able to.
enum class XdpMode { generic, native };

class XdpProgram {
 public:
  /// Loaded, and attached nowhere. Failure where the system has no eBPF or refuses it.
  /// @param paths at once; each has a socket for each of `queues`
  XdpProgram(std::uint32_t paths, std::uint32_t queues);

  /// Attach it to an interface in this mode, where it is attached in the other no longer; nothing where it already is.
  /// Failure where there is another program, or the driver cannot.
  void attach(const Interface& interface, XdpMode mode);
  /// Hand the frames of a queue that have the token of `path` to a socket that is bound to that queue.
  void set_socket(std::uint32_t path, std::uint32_t queue, const Descriptor& socket);
  void set_token(std::uint32_t path, std::uint32_t token);
  void forget_token(std::uint32_t token);

 private:
  std::uint32_t queues_;
  Descriptor sockets_;  // XSKMAP: path * queues + queue
  Descriptor tokens_;   // hash: token, to path * queues
  Descriptor program_;
  Descriptor link_;
  XdpMode mode_ = XdpMode::generic;
};

}  // namespace fabricbench
