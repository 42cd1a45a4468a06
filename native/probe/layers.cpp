#include "probe/layers.hpp"

#include <algorithm>
#include <array>

#include "transport/frame.hpp"
#include "transport/ip.hpp"
#include "transport/memory.hpp"
#include "transport/mpi.hpp"
#include "transport/tcp.hpp"
#include "transport/udp.hpp"

namespace fabricbench {
namespace {

/// A layer whose receivers sleep or spin, as the plan asks.
template <template <Receive> class T>
std::unique_ptr<Endpoint> open_socket_layer(const Site& site, const PlanProbe& probe) {
  if (probe.receive == Receive::polling) return std::make_unique<EndpointOver<T<Receive::polling>>>(site);
  return std::make_unique<EndpointOver<T<Receive::blocking>>>(site);
}

std::unique_ptr<Endpoint> open_mpi(const Site& site, const PlanProbe&) {
  return std::make_unique<EndpointOver<MpiPath>>(site);
}

std::unique_ptr<Endpoint> open_memory(const Site&, const PlanProbe& probe) {
  const std::string word = probe.parameters.contains("kernel") && probe.parameters["kernel"].is_string()
                               ? probe.parameters["kernel"].get<std::string>()
                               : std::string(probe.parameters.contains("kernel") ? "?" : "copy");
  const auto kernel = value_of<MemoryKernel>(word);
  if (!kernel) {
    throw Failure(FailureCode::unsupported,
                  "kernel must be copy, scale, add or triad, found " + probe.parameters["kernel"].dump());
  }
  return std::make_unique<LocalEndpoint<Memory>>(
      Memory(probe.message_bytes, *kernel, probe.pattern == Pattern::stream));
}

Receive as_asked(Receive wanted) {
  if (wanted == Receive::library) {
    throw Failure(FailureCode::unsupported, "receive must be blocking or polling: only mpi has a library that waits");
  }
  return wanted;
}

Receive as_the_library_does(Receive) { return Receive::library; }

// One line for each layer.
const std::array layers{
    LayerEntry{Layer::memory, true, {"kernel"}, as_asked, open_memory},
    LayerEntry{Layer::frame, false, {}, as_asked, open_socket_layer<Frame>},
    LayerEntry{Layer::ip, false, {}, as_asked, open_socket_layer<Ip>},
    LayerEntry{Layer::udp, false, {}, as_asked, open_socket_layer<Udp>},
    LayerEntry{Layer::tcp, false, {}, as_asked, open_socket_layer<Tcp>},
    LayerEntry{Layer::mpi, false, {}, as_the_library_does, open_mpi},
};

template <class... Each>
std::array<PatternEntry, sizeof...(Each)> entries_of(PatternList<Each...>) {
  return {PatternEntry{Each::pattern, Each::smallest_message, Each::timing_member, Each::bytes_per_sample}...};
}

}  // namespace

const LayerEntry& layer_entry(Layer layer) { return *std::ranges::find(layers, layer, &LayerEntry::layer); }

const PatternEntry& pattern_entry(Pattern pattern) {
  static const auto patterns = entries_of(Patterns{});
  return *std::ranges::find(patterns, pattern, &PatternEntry::pattern);
}

}  // namespace fabricbench
