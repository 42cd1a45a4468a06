// Layer memory: the processor copies within its own memory. The ladder's first rung, as NIST's memcopy and the kernels
// of STREAM (McCalpin, 1995) measure it, with STREAM's counting of bytes: each read and each written byte is one.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/pattern_facts.hpp"
#include "transport/device.hpp"

namespace fabricbench {

using MemoryKernel = words::Kernel;

class Memory {
 public:
  /// Arrays of `message_bytes` each. Throws a Failure where the kernel cannot work on that size.
  Memory(std::size_t message_bytes, MemoryKernel kernel, bool is_sweeping);

  /// Copy a message to the other buffer and back, this many times.
  void there_and_back(std::size_t operations);
  /// Run the kernel over the arrays, this many times.
  void sweep(std::size_t operations);
  std::size_t bytes_there_and_back() const { return 2 * first_.size(); }
  std::size_t bytes_of_sweep() const;

 private:
  MessageBuffer first_;
  MessageBuffer second_;
  MessageBuffer third_;
  MemoryKernel kernel_;
};

static_assert(LocalTransport<Memory>);

/// The processor's own copies; the parameter `kernel` chooses what a sweep computes.
class MemoryDevice : public PlainMemory, public InterfaceTraffic {
 public:
  static constexpr Layer layer = Layer::memory;
  static constexpr std::string_view door = "processor";
  static constexpr std::array receives{Receive::blocking, Receive::polling};
  using Path = Memory;

  explicit MemoryDevice(const Attachment&) {}
  Memory open(const PlanProbe& probe) const;
};

static_assert(LocalDevice<MemoryDevice>);

}  // namespace fabricbench
