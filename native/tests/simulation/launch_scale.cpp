// launch_scale RANKS RECORD PATTERN...: simulates one launch of so many ranks with a cell of each pattern, and prints
// what it took, a name and a number a line (benchmarks/launch_scale.py). RECORD is written as by a measurer.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "simulation/launch.hpp"

namespace {

using fabricbench::simulation::running_rank;

// What rank 0 holds: each allocation has before it whose it is.
struct Owner {
  std::size_t bytes;
  long is_first;
};
constexpr std::size_t before = 16;
static_assert(sizeof(Owner) <= before);

std::size_t held_by_first = 0;
std::size_t most_held_by_first = 0;

void* allocate(std::size_t bytes) {
  auto* const block = static_cast<char*>(std::malloc(bytes + before));
  if (block == nullptr) throw std::bad_alloc();
  const bool is_first = running_rank() == 0;
  *reinterpret_cast<Owner*>(block) = {.bytes = bytes, .is_first = is_first};
  if (is_first) {
    held_by_first += bytes;
    if (held_by_first > most_held_by_first) most_held_by_first = held_by_first;
  }
  return block + before;
}

void release(void* memory) {
  if (memory == nullptr) return;
  char* const block = static_cast<char*>(memory) - before;
  const Owner& owner = *reinterpret_cast<Owner*>(block);
  if (owner.is_first != 0) held_by_first -= owner.bytes;
  std::free(block);
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: launch_scale RANKS RECORD PATTERN...\n", stderr);
    return 2;
  }
  const fabricbench::simulation::LaunchOptions options{
      .ranks = std::atoi(argv[1]), .record = argv[2], .patterns = {argv + 3, argv + argc}};
  const auto outcome = fabricbench::simulation::simulate_launch(options);
  for (const std::string& cause : outcome.causes) std::fprintf(stderr, "%s\n", cause.c_str());
  std::printf("start_seconds %.6f\n", outcome.start_seconds);
  for (std::size_t i = 0; i < outcome.cell_end_seconds.size(); ++i) {
    std::printf("end_of_%s_seconds %.6f\n", argv[3 + i], outcome.cell_end_seconds[i]);
  }
  std::printf("all_seconds %.6f\nrank_0_bytes %zu\n", outcome.all_seconds, most_held_by_first);
  return outcome.causes.empty() && outcome.left.empty() ? 0 : 1;
}
