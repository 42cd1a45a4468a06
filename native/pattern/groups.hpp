// The patterns of many ranks: who a member sends to and receives from (pattern/channels.hpp says what such a type has).
#pragma once

#include <algorithm>

#include "pattern/channels.hpp"

namespace fabricbench {

/// Two members, each with the other.
struct Pingping {
  static void links(const Group& group, Links& links) { links.exchange_with(1 - group.member); }
};
struct Bistream : Pingping {};

struct Ring {
  static void links(const Group& group, Links& links) {
    links.send_to(group.right());
    links.receive_from(group.left());
  }
};
struct Sendrecv : Ring {};

/// Both neighbours along one axis of a periodic grid. Channels up the axis and down it are different ones even where
/// both neighbours are the same member, so those down take the next flow.
inline void add_axis(Links& links, std::size_t up, std::size_t down, std::size_t axis) {
  const std::size_t flow_up = 2 * axis;
  const std::size_t flow_down = 2 * axis + 1;
  links.send_to(up, flow_up);
  links.receive_from(down, flow_up);
  links.send_to(down, flow_down);
  links.receive_from(up, flow_down);
}

struct Exchange {
  static void links(const Group& group, Links& links) { add_axis(links, group.right(), group.left(), 0); }
};

struct Halo {
  static void links(const Group& group, Links& links) {
    std::size_t stride = 1;
    std::size_t axis = 0;
    for (const std::size_t side : sides(group)) {
      const std::size_t place = group.member / stride % side;
      const auto moved = [&](std::size_t to) { return group.member + to * stride - place * stride; };
      if (side > 1) add_axis(links, moved((place + 1) % side), moved((place + side - 1) % side), axis);
      stride *= side;
      ++axis;
    }
  }
  static std::size_t channels(const Group& group) {
    return 2 * group.members *
           static_cast<std::size_t>(std::ranges::count_if(sides(group), [](auto side) { return side > 1; }));
  }

 private:
  static std::vector<std::size_t> sides(const Group& group) {
    return grid_sides(group.members, group.parameter("dimensions"));
  }
};

inline void with_all_others(const Group& group, const auto& add) {
  for (std::size_t other = 0; other < group.members; ++other) {
    if (other != group.member) add(other);
  }
}

struct Star {
  static void links(const Group& group, Links& links) {
    if (group.member != 0) return links.exchange_with(0);
    with_all_others(group, [&](std::size_t other) { links.exchange_with(other); });
  }
};

struct Incast {
  static void links(const Group& group, Links& links) {
    if (group.member != 0) return links.send_to(0);
    with_all_others(group, [&](std::size_t other) { links.receive_from(other); });
  }
};

struct Outcast {
  static void links(const Group& group, Links& links) {
    if (group.member != 0) return links.receive_from(0);
    with_all_others(group, [&](std::size_t other) { links.send_to(other); });
  }
};

struct Chaos {
  static void links(const Group& group, Links& links) {
    with_all_others(group, [&](std::size_t other) { links.exchange_with(other); });
  }
  static std::size_t channels(const Group& group) {
    return group.members * (group.members - 1) * flows_of(group.parameters);
  }
};

/// The first half to the second; of an odd number the last rests.
struct MessageRate {
  static void links(const Group& group, Links& links) {
    const std::size_t half = group.members / 2;
    if (group.member < half) links.send_to(group.member + half);
    if (group.member >= half && group.member < 2 * half) links.receive_from(group.member - half);
  }
};

struct Bisection {
  static std::size_t rounds(const Group& group) { return group.parameter("matchings"); }
  static void links(const Group& group, Links& links) {
    const auto match = match_of(group.members, group.member, group.parameter("seed"), group.round);
    if (!match) return;
    if (match->sends) {
      links.send_to(match->partner);
    } else {
      links.receive_from(match->partner);
    }
  }
  static std::size_t channels(const Group& group) { return group.members / 2 * flows_of(group.parameters); }
};

}  // namespace fabricbench
