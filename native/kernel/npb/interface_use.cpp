// What the network interfaces of this host carry in timed sections. A file of text is read for it, so never inside one.
#include "kernel/npb/profile.hpp"

namespace fabricbench::npb {
namespace {

struct State {
  InterfaceUse total;
  InterfaceUse before;
};

State& state() {
  static State instance;
  return instance;
}

}  // namespace

const InterfaceUse& interface_use() { return state().total; }

void begin_interface_use() { state().before = read_interface_counters(); }

void end_interface_use() {
  for (const auto& [name, after] : read_interface_counters()) {
    const InterfaceBytes before = state().before[name];  // none: it came up meanwhile
    InterfaceBytes& total = state().total[name];
    total.sent += after.sent - before.sent;
    total.received += after.received - before.received;
  }
}

void reset_interface_use() { state() = State{}; }

}  // namespace fabricbench::npb
