#include "probe/doors.hpp"

#include <algorithm>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

template <class Names>
std::string joined(const Names& names) {
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

std::vector<std::string_view> doors_into(Layer layer) {
  std::vector<std::string_view> names;
  for (const Door& door : all_doors()) {
    if (door.layer == layer) names.push_back(door.name);
  }
  return names;
}

}  // namespace

const Door& door_of(const PlanProbe& probe) {
  const auto asked = probe.parameters.find("door");
  const bool is_asked = asked != probe.parameters.end();
  for (const Door& door : all_doors()) {
    if (door.layer == probe.layer && (!is_asked || asked->second == ParameterValue(std::string(door.name))))
      return door;
  }
  throw Failure(FailureCode::unsupported, "door must be one of those into layer " + std::string(name_of(probe.layer)) +
                                              " (" + joined(doors_into(probe.layer)) + "), found " +
                                              (is_asked ? text_of(asked->second) : "none"));
}

bool is_local(Layer layer) {
  return std::ranges::any_of(all_doors(), [&](const Door& door) { return door.layer == layer && door.is_local; });
}

Receive receive_of(const Door& door, Receive wanted) {
  if (std::ranges::find(door.receives, wanted) != door.receives.end()) return wanted;
  if (door.receives.size() == 1 && door.receives.front() == Receive::library) return Receive::library;
  std::vector<std::string_view> names;
  for (const Receive receive : door.receives) names.push_back(name_of(receive));
  throw Failure(FailureCode::unsupported,
                "receive must be one of " + joined(names) + " through door " + std::string(door.name) + " into layer " +
                    std::string(name_of(door.layer)) + ", found " + std::string(name_of(wanted)) +
                    (door.receives_because.empty() ? "" : ": " + std::string(door.receives_because)));
}

OpenDevice& DeviceSet::lend(const Door& door) {
  std::unique_ptr<OpenDevice>& device = open_[&door];
  if (!device) device = door.open(attachment_);
  return *device;
}

}  // namespace fabricbench
