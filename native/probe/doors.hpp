// All doors, the devices behind them that are open, and the ends of paths that those open. Their types are forgotten
// here: this is the one place with virtual calls, none of them on a timed path. What stands behind them is
// probe/endpoint.hpp, compiled for each door in a file of its own. The table is made by native/probe/CMakeLists.txt,
// which has a line for each door.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/measurement.hpp"
#include "core/plan.hpp"
#include "pattern/channels.hpp"
#include "transport/device.hpp"

namespace fabricbench {

/// This rank's end of a path, with every pattern over it.
class Endpoint {
 public:
  Endpoint() = default;
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  virtual std::string address() const = 0;
  virtual void meet(std::string_view peer) = 0;
  /// Refuse messages that this layer does not carry.
  virtual void check_size(std::size_t message_bytes, std::size_t smallest_of_pattern) const = 0;
  /// Whether something is still posted that would take the messages of the next cell.
  virtual bool has_leftovers() const { return false; }
  /// What the system granted its sockets; nothing where it has none.
  virtual std::optional<GrantedBuffers> granted_buffers() const { return std::nullopt; }

  /// How this rank is attached by RDMA; nothing where the path is none of RDMA.
  virtual std::optional<RdmaAttachment> rdma_attachment() const { return std::nullopt; }

  /// What two ranks do over this path, built with its buffers and not yet begun: verifying messages, and a pattern.
  virtual std::unique_ptr<Prepared> prepare_verification(Task& task) = 0;
  virtual std::unique_ptr<Prepared> prepare(Pattern pattern, Task& task) = 0;

  /// What many do, over this path and others of the same kind; likewise.
  struct Member {
    Link link;
    Endpoint* endpoint;
    int peer_rank;
  };
  virtual std::unique_ptr<Prepared> prepare_group_verification(std::span<const Member> links, Task& task) = 0;
  virtual std::unique_ptr<Prepared> prepare_group(std::span<const Member> links, Task& task) = 0;

  std::uint32_t sequence = 1;  // of the next message, unreliable layers only
  std::uint32_t token = 0;     // that messages of this path carry
  bool is_used_up = false;     // to be closed after the cell
};

/// A device that is open.
class OpenDevice {
 public:
  OpenDevice() = default;
  virtual ~OpenDevice() = default;
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  /// Open this rank's end of a path for a cell whose receivers wait in this way, one of the door's.
  virtual std::unique_ptr<Endpoint> open(const Site& site, const PlanProbe& probe, Receive receive) = 0;
  /// Lend memory for messages of its paths.
  virtual MessageBuffer allocate(std::size_t bytes, MemoryKind kind) = 0;
  virtual Traffic traffic() const = 0;
  /// Before a cell, and at its end: the Failure of what the device itself has told meanwhile.
  virtual void forget_events() {}
  virtual void refuse_failed() {}
};

/// Opens the device of a door. Defined in probe/endpoint.hpp.
template <class D>
  requires Device<D> || LocalDevice<D>
std::unique_ptr<OpenDevice> open_device(const Attachment& attachment);

struct Door {
  Layer layer;
  std::string_view name;
  bool is_local;      // one rank by itself; its endpoint belongs to one cell
  bool is_one_sided;  // one rank works in memory of the other, which sends no answer
  bool sends_unseen;  // one rank writes into memory of the other, which is told of nothing: of a stream the sender
                      // keeps the time
  bool has_flows;     // tells parallel flows between two ranks apart
  std::size_t least_carried_bytes;  // smaller messages are padded to it
  std::span<const Receive> receives;
  std::string_view receives_because;  // why it has only these; empty where that says itself
  std::unique_ptr<OpenDevice> (*open)(const Attachment& attachment);
};

/// The table, in the order of its lines: the first door of a layer is what a cell gets that asks for none.
std::span<const Door> all_doors();

/// The door that a cell asks for by its parameter `door`. Failure: there is none of that name; it lists those there
/// are.
const Door& door_of(const PlanProbe& probe);

/// Whether cells of this layer concern one rank by itself.
bool is_local(Layer layer);

/// How the receivers behind a door wait when the plan asks for `wanted`; a Failure where they cannot.
Receive receive_of(const Door& door, Receive wanted);

/// The devices of a launch on this rank, each opened when the first cell asks for it.
class DeviceSet {
 public:
  explicit DeviceSet(const Attachment& attachment) : attachment_(attachment) {}
  /// Throws what opening it throws; the next cell tries again.
  OpenDevice& lend(const Door& door);

 private:
  Attachment attachment_;
  std::map<const Door*, std::unique_ptr<OpenDevice>> open_;
};

/// The line of a device in the table; open_device<D> is compiled in a file of its own.
template <class D>
Door door_to() {
  std::string_view because;
  if constexpr (requires { D::receives_because; }) because = D::receives_because;
  if constexpr (LocalDevice<D>) {
    return {D::layer, D::door, true, false, false, false, 0, D::receives, because, open_device<D>};
  } else {
    using Path = typename D::template Path<D::receives.front()>;
    return {D::layer,
            D::door,
            false,
            OneSidedTransport<Path>,
            WritingTransport<Path>,
            D::has_flows,
            least_carried_bytes<Path>,
            D::receives,
            because,
            open_device<D>};
  }
}

}  // namespace fabricbench
