// What a device is: one way (a door) into one layer on this rank. It is opened once in a launch, when the first cell
// asks for it, and lent to every cell after that. It owns what paths share: the memory that messages lie in, what tells
// of completed messages (a posting path's Pool), the filters of its sockets, and the counters that show which way the
// bytes went. Paths (transport/transport.hpp) come from it and end before it.
//
// A door is added by a header with its path and its device, and a line in native/probe/CMakeLists.txt; a plan asks for
// it by the parameter `door`. CONTRIBUTING.md has one as an example.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/failure.hpp"
#include "base/interface.hpp"
#include "core/message_buffer.hpp"
#include "core/plan.hpp"
#include "core/traffic.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

/// How this rank is attached to the fabric under test.
struct Attachment {
  std::optional<Interface> interface;
  MPI_Comm communicator = MPI_COMM_NULL;  // of all ranks, for messages that are measured
  RdmaEnd rdma{};
};

/// The interface that leads into the fabric, or the Failure that says what is missing.
inline const Interface& needed_interface(const Attachment& attachment) {
  if (!attachment.interface) {
    throw Failure(
        FailureCode::unreachable,
        "this host has no interface in the fabric: check its name and subnet in the testbed, and `ip address`");
  }
  return *attachment.interface;
}

/// Its IPv4 address in host byte order, likewise.
inline std::uint32_t needed_address(const Attachment& attachment) {
  const Interface& interface = needed_interface(attachment);
  if (!interface.address) {
    throw Failure(FailureCode::unreachable,
                  "interface " + interface.name + " has no IPv4 address in the fabric's subnet: give it one");
  }
  return *interface.address;
}

/// What a path gets of what all paths of this rank share: the same part for each other rank of the launch, the more
/// flows there are the less for the later ones. Its place alone counts, not what was opened before it: cells come in
/// random order, and what they lose must not follow from that.
inline std::size_t part_of_path(std::size_t of_all, const Attachment& attachment, const Site& site) {
  int ranks = 2;
  if (attachment.communicator != MPI_COMM_NULL) MPI_Comm_size(attachment.communicator, &ranks);
  const auto peers = static_cast<std::size_t>(std::max(ranks - 1, 1));
  return of_all / (peers * (static_cast<std::size_t>(site.flow) + 1));
}

/// What every device has.
///
/// `receives` are the ways in which its receivers can wait. allocate() lends memory that its paths send from and
/// receive into; it may outlive the device where a layer still owns it. traffic() is what the counters read now that
/// prove which way the bytes went: those of the network interfaces, unless the fabric counts elsewhere.
template <class D>
concept AnyDevice = requires(D device, const D constant, std::size_t bytes, MemoryKind kind) {
  { D::layer } -> std::convertible_to<Layer>;
  { D::door } -> std::convertible_to<std::string_view>;
  { std::span(D::receives) } -> std::convertible_to<std::span<const Receive>>;
  { device.allocate(bytes, kind) } -> std::same_as<MessageBuffer>;
  { constant.traffic() } -> std::same_as<Traffic>;
};

/// A device that tells of its own failures apart from what is sent through it. forget_events() is called before a cell,
/// refuse_failed() at its end: it throws the Failure of what the device has told meanwhile.
template <class D>
concept SelfReportingDevice = requires(D device) {
  device.forget_events();
  device.refuse_failed();
};

/// Whether a device reads the parameters of its layer when it opens a path.
template <class D, Receive way>
concept TakesParameters = requires(D device, const Site& site, const PlanProbe& probe) {
  { device.template open<way>(site, probe) } -> std::same_as<typename D::template Path<way>>;
};

/// Whether a device opens paths whose receivers wait in this way: `Path<way>` is their type. Every pattern is compiled
/// over them, so that being a Transport is not enough.
template <class D, Receive way>
concept OpensPaths =
    (GroupTransport<typename D::template Path<way>> || RemoteMemoryTransport<typename D::template Path<way>>) &&
    (requires(D device, const Site& site) {
      { device.template open<way>(site) } -> std::same_as<typename D::template Path<way>>;
    } || TakesParameters<D, way>);

/// Whether a device also opens paths that note the stages of their messages.
template <class D, Receive way>
concept OpensStaged = requires(D device, const Site& site, const PlanProbe& probe) {
  requires D::has_stages;
  { device.template open_staged<way>(site, probe) } -> StagedTransport;
};

/// A device that leads to other ranks. `has_flows`: it tells several paths between the same two ranks apart.
template <class D>
concept Device = AnyDevice<D> && std::constructible_from<D, const Attachment&> && requires {
  { D::has_flows } -> std::convertible_to<bool>;
  requires OpensPaths<D, D::receives.front()> && OpensPaths<D, D::receives.back()>;
};

/// A device of this rank alone: the cell that opens it says what is to be done.
template <class D>
concept LocalDevice = AnyDevice<D> && std::constructible_from<D, const Attachment&> &&
                      requires(D device, const PlanProbe& probe, typename D::Path local) {
                        requires LocalTransport<typename D::Path>;
                        { device.open(probe) } -> std::same_as<typename D::Path>;
                      };

/// For devices whose messages may lie anywhere in the process.
struct PlainMemory {
  static MessageBuffer allocate(std::size_t bytes, MemoryKind kind = MemoryKind::plain) {
    return host_memory(bytes, kind);
  }
};

/// For devices whose bytes go through the network interfaces that the kernel counts for.
struct InterfaceTraffic {
  static Traffic traffic() { return read_traffic_counters(); }
};

/// A device whose paths are sockets, each with a filter of its own: nothing is shared but where they are bound.
template <template <Receive> class PathOf>
class SocketDevice : public PlainMemory, public InterfaceTraffic {
 public:
  static constexpr std::array receives{Receive::blocking, Receive::polling};
  template <Receive way>
  using Path = PathOf<way>;

  explicit SocketDevice(const Attachment& attachment) : attachment_(attachment) {}
  template <Receive way>
  Path<way> open(const Site& site) const {
    return Path<way>(attachment_, site);
  }

 protected:
  const Attachment& attachment() const { return attachment_; }

 private:
  Attachment attachment_;
};

}  // namespace fabricbench
