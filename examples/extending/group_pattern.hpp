// Pattern shift: every cyclic shift in its turn. In round d each rank streams to the one d further, so that the rounds
// together are the messages of an all-to-all, a permutation at a time, as mpiGraph goes through them. A shift that is
// slower than the others shows where routes share a link between switches.
//
// This is native/pattern/shift.hpp, with a line in the class Pattern of src/fabricbench/patterns.py:
//
//     SHIFT = _flood("shift", "each rank streams to the one d further, for every d in its turn", channels="n x flows")
#pragma once

#include "pattern/channels.hpp"

namespace fabricbench {

struct Shift {
  static std::size_t rounds(const Group& group) { return group.members - 1; }

  static void links(const Group& group, Links& links) {
    const std::size_t distance = group.round + 1;
    links.send_to((group.member + distance) % group.members);
    links.receive_from((group.member + group.members - distance) % group.members);
  }
};

}  // namespace fabricbench
