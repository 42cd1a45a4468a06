// A packet socket on one interface, owned. What is sent or received on it is the business of ring.hpp and sender.hpp.
#pragma once

#include <string>

namespace fabricbench::emulated_switch {

class PacketSocket {
 public:
  /// Opens a socket bound to nothing yet; EnvironmentLacks where that is not permitted.
  PacketSocket();
  ~PacketSocket();
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;
  PacketSocket(PacketSocket&& other) noexcept;
  PacketSocket& operator=(PacketSocket&&) = delete;

  /// Binds to the interface; `protocol` 0 receives nothing, ETH_P_ALL all frames.
  void bind_to(const std::string& interface, int protocol);

  template <typename Value>
  void set(int level, int option, const Value& value, const char* what) {
    set_raw(level, option, &value, sizeof value, what);
  }

  [[nodiscard]] int fd() const { return fd_; }

 private:
  void set_raw(int level, int option, const void* value, unsigned size, const char* what);

  int fd_;
};

}  // namespace fabricbench::emulated_switch
