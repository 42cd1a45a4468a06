// Two devices of one process over the library that has no adapter, paths of theirs that have met, and messages that
// tell.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/failure.hpp"
#include "rdma/adapter.hpp"
#include "transport/rdma_connected.hpp"
#include "transport/rdma_one_sided.hpp"
#include "verbs/fake_library.hpp"

namespace fabricbench {

constexpr std::size_t message_bytes = 1024;

class OverVerbs : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("verbs." + std::to_string(getpid()));
    const std::string port = std::string("sys/class/infiniband/") + verbs::fake::device_name + "/ports/1/";
    write(std::string("sys/class/infiniband/") + verbs::fake::device_name + "/node_type", "1: CA");
    write(port + "link_layer", "Ethernet");
    write(port + "state", "4: ACTIVE");
    write(port + "gids/1", "0000:0000:0000:0000:0000:ffff:0a01:0001");
    write(port + "gid_attrs/types/1", "RoCE v2");
    write(port + "gid_attrs/ndevs/1", "h1");
    verbs::fake::ledger() = {};
  }
  void TearDown() override {
    EXPECT_EQ(verbs::fake::ledger().faults, std::vector<std::string>{});
    EXPECT_EQ(verbs::fake::ledger().things, 0) << "not all is given back";
    EXPECT_EQ(verbs::fake::ledger().unacknowledged, 0) << "an event keeps its queue pair from being destroyed";
    std::filesystem::remove_all(root_);
  }
  /// The version of RoCE of adapters that are opened from now on.
  void speak(const std::string& version) const {
    write(std::string("sys/class/infiniband/") + verbs::fake::device_name + "/ports/1/gid_attrs/types/1", version);
  }
  /// The address of the port from now on.
  void readdress(const std::string& gid) const {
    write(std::string("sys/class/infiniband/") + verbs::fake::device_name + "/ports/1/gids/1", gid);
  }
  std::shared_ptr<Adapter> adapter() const {
    return Adapter::open({.interface = {}, .rdma = {.device = verbs::fake::device_name}}, root_);
  }

 private:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }

  std::filesystem::path root_;
};

/// Two paths that have met, each of a device of its own.
template <class Path, class Shared>
struct Ends {
  explicit Ends(const std::shared_ptr<Adapter>& one, const std::shared_ptr<Adapter>& other,
                const RdmaParameters& parameters = {})
      : near_device(std::make_shared<Shared>(one)),
        far_device(std::make_shared<Shared>(other)),
        near(near_device, {.token = 1, .peer_rank = 1, .is_first = true}, parameters),
        far(far_device, {.token = 1, .peer_rank = 0}, parameters) {
    near.meet(far.address());
    far.meet(near.address());
  }
  /// What each does while it waits for the other.
  void move_on() {
    near_device->move_on();
    far_device->move_on();
  }

  std::shared_ptr<Shared> near_device;
  std::shared_ptr<Shared> far_device;
  Path near;
  Path far;
};
template <class Transfer, Receive way = Receive::polling>
using Connected = Ends<ConnectedPath<way, Transfer>, Connections<Transfer>>;
template <class Access, Receive way = Receive::polling>
using OneSided = Ends<OneSidedPath<way, Access>, OneSidedConnections>;

inline void fill(std::span<std::byte> message, std::size_t number) {
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(number + i);
}
inline bool is_filled(std::span<const std::byte> message, std::size_t number) {
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (message[i] != static_cast<std::byte>(number + i)) return false;
  }
  return true;
}

template <class Action>
std::string failure_of(Action action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "it did not fail";
}

}  // namespace fabricbench
