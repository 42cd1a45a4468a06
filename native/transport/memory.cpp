#include "transport/memory.hpp"

#include <cstring>

#include "core/plan.hpp"
#include "pattern/parameters.hpp"

namespace fabricbench {
namespace {

constexpr double scalar = 3.0;

/// Tell the compiler that the memory is read and written elsewhere, so that no repetition is optimised away.
inline void touch_memory() { asm volatile("" ::: "memory"); }

using Doubles = double* __restrict;
using ConstDoubles = const double* __restrict;

void copy(Doubles to, ConstDoubles from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}
void scale(Doubles to, ConstDoubles from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = scalar * from[i];
}
void add(Doubles to, ConstDoubles left, ConstDoubles right, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = left[i] + right[i];
}
void triad(Doubles to, ConstDoubles left, ConstDoubles right, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = left[i] + scalar * right[i];
}

template <class Operation>
void repeat(std::size_t operations, Operation operation) {
  for (std::size_t i = 0; i < operations; ++i) {
    operation();
    touch_memory();
  }
}

}  // namespace

Memory MemoryDevice::open(const PlanProbe& probe) const {
  return {probe.message_bytes, word_parameter<MemoryKernel>(probe, "kernel"), facts_of(probe.pattern).is_stream};
}

Memory::Memory(std::size_t message_bytes, MemoryKernel kernel, bool is_sweeping)
    : first_(message_bytes), second_(message_bytes), third_(is_sweeping ? message_bytes : 0), kernel_(kernel) {
  if (is_sweeping && (message_bytes == 0 || message_bytes % sizeof(double) != 0)) {
    throw Failure(FailureCode::unsupported,
                  "a stream over memory works on arrays of doubles: message_bytes must be a multiple of 8");
  }
}

void Memory::there_and_back(std::size_t operations) {
  repeat(operations, [this] {
    std::memcpy(second_.data(), first_.data(), first_.size());
    touch_memory();
    std::memcpy(first_.data(), second_.data(), first_.size());
  });
}

void Memory::sweep(std::size_t operations) {
  double* const a = reinterpret_cast<double*>(first_.data());
  double* const b = reinterpret_cast<double*>(second_.data());
  double* const c = reinterpret_cast<double*>(third_.data());
  const std::size_t n = first_.size() / sizeof(double);
  switch (kernel_) {
    case MemoryKernel::copy:
      return repeat(operations, [=] { copy(c, a, n); });
    case MemoryKernel::scale:
      return repeat(operations, [=] { scale(b, c, n); });
    case MemoryKernel::add:
      return repeat(operations, [=] { add(c, a, b, n); });
    case MemoryKernel::triad:
      return repeat(operations, [=] { triad(a, b, c, n); });
  }
}

std::size_t Memory::bytes_of_sweep() const {
  const bool reads_two = kernel_ == MemoryKernel::add || kernel_ == MemoryKernel::triad;
  return (reads_two ? 3 : 2) * first_.size();
}

}  // namespace fabricbench
