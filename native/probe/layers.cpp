#include "probe/layers.hpp"

#include <algorithm>
#include <array>

#include "pattern/parameters.hpp"
#include "probe/open.hpp"
#include "transport/memory.hpp"

namespace fabricbench {
namespace {

std::unique_ptr<Endpoint> open_memory(const Site&, const PlanProbe& probe) {
  const auto kernel = word_parameter<MemoryKernel>(probe, "kernel");
  return std::make_unique<LocalEndpoint<Memory>>(
      Memory(probe.message_bytes, kernel, facts_of(probe.pattern).is_stream));
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
    LayerEntry{Layer::memory, true, false, {}, as_asked, open_memory},
    LayerEntry{Layer::frame, false, false, {}, as_asked, open_frame},
    LayerEntry{Layer::ip, false, false, {}, as_asked, open_ip},
    LayerEntry{Layer::udp, false, true, {}, as_asked, open_udp},
    LayerEntry{Layer::tcp, false, true, {}, as_asked, open_tcp},
    LayerEntry{Layer::mpi, false, true, {}, as_the_library_does, open_mpi},
};

}  // namespace

const LayerEntry& layer_entry(Layer layer) { return *std::ranges::find(layers, layer, &LayerEntry::layer); }

}  // namespace fabricbench
