#include "probe/layers.hpp"

#include <algorithm>
#include <array>

#include "mpi_operation/operation.hpp"
#include "probe/open.hpp"
#include "transport/memory.hpp"

namespace fabricbench {
namespace {

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

std::vector<std::string> parameters_of(Pattern pattern) {
  switch (facts_of(pattern).family) {
    case Family::flood:
      if (pattern == Pattern::bisection) return {"matchings", "seed"};
      return {"flows"};
    case Family::lockstep:
      return pattern == Pattern::halo ? std::vector<std::string>{"dimensions"} : std::vector<std::string>{};
    case Family::matrix:
      return {"schedule"};
    case Family::operation:
      return operation_parameters(pattern);
    case Family::pair:      // each is listed with its own
    case Family::workload:  // a program of its own runs it
      break;
  }
  return {};
}

// One line for each layer.
const std::array layers{
    LayerEntry{Layer::memory, true, false, {"kernel"}, as_asked, open_memory},
    LayerEntry{Layer::frame, false, false, {}, as_asked, open_frame},
    LayerEntry{Layer::ip, false, false, {}, as_asked, open_ip},
    LayerEntry{Layer::udp, false, true, {}, as_asked, open_udp},
    LayerEntry{Layer::tcp, false, true, {}, as_asked, open_tcp},
    LayerEntry{Layer::mpi, false, true, {}, as_the_library_does, open_mpi},
};

/// One line for each pattern of two.
template <class... Each>
std::vector<PatternEntry> entries_of(PatternList<Each...>) {
  return {PatternEntry{Each::pattern, Each::smallest_message, Each::timing_member, Each::parameters()}...};
}

/// The patterns of many ranks and the operations have their parameters in common within a family.
std::vector<PatternEntry> all_entries() {
  std::vector<PatternEntry> entries = entries_of(Patterns{});
  for (std::size_t i = 0; i < names_of<Pattern>.size(); ++i) {
    const auto pattern = static_cast<Pattern>(i);
    if (std::ranges::find(entries, pattern, &PatternEntry::pattern) != entries.end()) continue;
    entries.push_back({pattern, 1, 0, parameters_of(pattern)});
  }
  return entries;
}

}  // namespace

const LayerEntry& layer_entry(Layer layer) { return *std::ranges::find(layers, layer, &LayerEntry::layer); }

const PatternEntry& pattern_entry(Pattern pattern) {
  static const std::vector<PatternEntry> patterns = all_entries();
  return *std::ranges::find(patterns, pattern, &PatternEntry::pattern);
}

}  // namespace fabricbench
