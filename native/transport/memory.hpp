// Layer memory: the processor copies within its own memory. The ladder's first rung, as NIST's memcopy and the kernels
// of STREAM (McCalpin, 1995) measure it, with STREAM's counting of bytes: each read and each written byte is one, and
// what a store through the caches reads before it is written over is none.
//
// By default one thread sweeps, with plain stores: what one rank's copies cost. STREAM on a node is `threads` 0, one on
// each processor; where it was built by a compiler that writes past the caches, its stores are `streaming`.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/pattern_facts.hpp"
#include "transport/device.hpp"
#include "transport/memory_crew.hpp"
#include "transport/memory_kernels.hpp"

namespace fabricbench {

/// How the arrays are swept.
struct Sweeping {
  MemoryKernel kernel = MemoryKernel::copy;
  MemoryStores stores = MemoryStores::plain;
  std::size_t threads = 1;
};

class Memory {
 public:
  /// Two buffers of `message_bytes` for copies there and back.
  explicit Memory(std::size_t message_bytes);
  /// Arrays of `message_bytes` each. Throws a Failure where they cannot be swept so.
  Memory(std::size_t message_bytes, const Sweeping& sweeping);

  /// Copy a message to the other buffer and back, this many times.
  void there_and_back(std::size_t operations);
  std::size_t bytes_there_and_back() const { return 2 * first_.size(); }

  /// Call `measure(sweep)` with what sweeps the arrays so many times, `sweep(operations)`: all that is asked for is
  /// chosen before.
  template <class Measure>
  auto with_sweep(Measure measure) {
    switch (sweeping_.kernel) {
      case MemoryKernel::copy:
        return with_kernel<MemoryKernel::copy>(measure);
      case MemoryKernel::scale:
        return with_kernel<MemoryKernel::scale>(measure);
      case MemoryKernel::add:
        return with_kernel<MemoryKernel::add>(measure);
      case MemoryKernel::triad:
        break;
    }
    return with_kernel<MemoryKernel::triad>(measure);
  }
  std::size_t bytes_of_sweep() const { return arrays_swept(sweeping_.kernel) * first_.size(); }
  std::size_t threads() const { return processors_.empty() ? 1 : processors_.size(); }

 private:
  template <MemoryKernel kernel, class Measure>
  auto with_kernel(Measure measure) {
    if (sweeping_.stores == MemoryStores::streaming) return with_stores<kernel, MemoryStores::streaming>(measure);
    return with_stores<kernel, MemoryStores::plain>(measure);
  }

  template <MemoryKernel kernel, MemoryStores stores, class Measure>
  auto with_stores(Measure measure) {
    const SweptArrays arrays = swept();
    if (processors_.empty()) {
      return measure([arrays](std::size_t operations) {
        for (std::size_t i = 0; i < operations; ++i) {
          sweep_once<kernel, stores>(arrays);
        }
      });
    }
    const auto work = [this, arrays](std::size_t member) { sweep_once<kernel, stores>(part_of(arrays, member)); };
    Crew crew(processors_, [this, arrays](std::size_t member) { touch(part_of(arrays, member)); }, work);
    return measure([&crew](std::size_t operations) { crew.run(operations); });
  }

  SweptArrays swept();
  /// The part of a thread: whole pages, so that no two threads touch the same one first.
  SweptArrays part_of(const SweptArrays& arrays, std::size_t member) const;
  static void touch(const SweptArrays& part);

  Sweeping sweeping_;
  std::vector<int> processors_;  // of the threads; empty where the calling one sweeps alone, wherever it is
  MessageBuffer first_;
  MessageBuffer second_;
  MessageBuffer third_;
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
