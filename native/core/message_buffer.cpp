#include "core/message_buffer.hpp"

#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

// Of x86 and of ARM with pages of 4 KiB; where they are larger, there are none of these.
constexpr std::size_t huge_page = std::size_t{2} << 20U;

constexpr std::size_t whole_pages(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + huge_page - 1) / huge_page * huge_page;
}

std::shared_ptr<std::byte> unmapped_later(void* from, std::size_t all, std::byte* begin) {
  return {begin, [from, all](std::byte*) { munmap(from, all); }};
}

/// How much of the mapping that begins there lies in huge pages, as smaps tells (proc_pid_smaps(5)).
std::size_t advised_bytes(const std::byte* begin) {
  std::ifstream maps("/proc/self/smaps");
  bool is_in_it = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    std::size_t kibibytes = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
      is_in_it = from == reinterpret_cast<std::uintptr_t>(begin);
    } else if (is_in_it && std::sscanf(line.c_str(), "AnonHugePages: %zu kB", &kibibytes) == 1) {
      return kibibytes << 10U;
    }
  }
  return 0;
}

/// From the pages that the system has reserved (vm.nr_hugepages), else as the system can, asked for by advice. Between
/// two stretches that nobody may touch, so that the kernel joins it with no other mapping.
MessageBuffer huge_memory(std::size_t bytes) {
  const std::size_t all = whole_pages(bytes);
  constexpr int usual = MAP_PRIVATE | MAP_ANONYMOUS;
  constexpr int of_huge_pages = MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);  // log2(huge_page)
  void* const reserved = mmap(nullptr, all, PROT_READ | PROT_WRITE, usual | MAP_POPULATE | of_huge_pages, -1, 0);
  if (reserved != MAP_FAILED) {
    return {unmapped_later(reserved, all, static_cast<std::byte*>(reserved)), bytes, bytes};
  }
  const std::size_t with_rest = all + 2 * huge_page;
  void* const around = mmap(nullptr, with_rest, PROT_NONE, usual | MAP_NORESERVE, -1, 0);
  if (around == MAP_FAILED) throw std::bad_alloc();
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(around) + huge_page) & ~(huge_page - 1);
  auto* const begin = reinterpret_cast<std::byte*>(first);
  std::shared_ptr<std::byte> memory = unmapped_later(around, with_rest, begin);
  if (mprotect(begin, all, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  madvise(begin, all, MADV_HUGEPAGE);  // where the system knows none, the pages are what they are
  std::memset(begin, 0, all);
  return {std::move(memory), bytes, std::min(bytes, advised_bytes(begin))};
}

}  // namespace

MessageBuffer host_memory(std::size_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::plain) return MessageBuffer(bytes);
  if (kind == MemoryKind::huge) return huge_memory(bytes);
  throw Failure(FailureCode::unsupported, "memory of kind " + std::string(name_of(kind)) +
                                              " is not built into this measurer: take plain or huge");
}

}  // namespace fabricbench
