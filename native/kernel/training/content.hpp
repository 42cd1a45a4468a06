// What messages contain, so that a wrong one is seen. Elements are unsigned integers as wide as the model's numbers,
// whose sums have no rounding: the same on all ranks whatever the order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fabricbench::training {

/// Element `i` of message number `mark` from a member of a group. Distinguishes members, messages and places: one that
/// is taken for another, missing or summed twice gives another sum.
template <class Element>
constexpr Element element_of(int member, std::uint64_t mark, std::size_t i) {
  return static_cast<Element>(7 * i + 3 * mark + (static_cast<std::uint64_t>(member) + 1) * (2 * i + 2 * mark + 1));
}

/// The sum of that over the members of a group.
template <class Element>
constexpr Element sum_of(int members, std::uint64_t mark, std::size_t i) {
  const auto n = static_cast<std::uint64_t>(members);
  return static_cast<Element>(n * (7 * i + 3 * mark) + n * (n + 1) / 2 * (2 * i + 2 * mark + 1));
}

/// All places of a message: steps that are not timed.
struct Everywhere {
  template <class Visit>
  static void visit(std::size_t elements, Visit visit) {
    for (std::size_t i = 0; i < elements; ++i) visit(i);
  }
};

/// Three of them, whatever its size: timed steps take no longer for it.
struct AtThreePlaces {
  template <class Visit>
  static void visit(std::size_t elements, Visit visit) {
    visit(0);
    visit(elements / 2);
    visit(elements - 1);
  }
};

}  // namespace fabricbench::training
