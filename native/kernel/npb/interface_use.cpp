// What the network interfaces of this host carry in timed sections. Files are read for it, so never inside one.
#include "kernel/frame/profile.hpp"

namespace fabricbench::npb {
namespace {

struct State {
  Traffic total;
  Traffic before;
};

State& state() {
  static State instance;
  return instance;
}

}  // namespace

const Traffic& interface_use() { return state().total; }

void begin_interface_use() { state().before = read_traffic_counters(); }

void end_interface_use() {
  Traffic carried = traffic_between(state().before, read_traffic_counters());
  note_above(carried);
  add_traffic(state().total, carried);
}

void reset_interface_use() { state() = State{}; }

}  // namespace fabricbench::npb
