// All doors, and the devices behind them that are open. The table itself is made by native/probe/CMakeLists.txt, which
// has a line for each door.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.hpp"
#include "probe/endpoint.hpp"
#include "transport/device.hpp"

namespace fabricbench {

struct Door {
  Layer layer;
  std::string_view name;
  bool is_local;   // one rank by itself; its endpoint belongs to one cell
  bool has_flows;  // tells parallel flows between two ranks apart
  std::span<const Receive> receives;
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
  if constexpr (LocalDevice<D>) {
    return {D::layer, D::door, true, false, D::receives, open_device<D>};
  } else {
    return {D::layer, D::door, false, D::has_flows, D::receives, open_device<D>};
  }
}

}  // namespace fabricbench
