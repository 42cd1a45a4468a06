#include "kernel/shared/scene.hpp"

#include <array>

namespace fabricbench::shared {
namespace {

constexpr std::array<Vector, 6> sides{{{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {-1, 0, 0}, {0, -1, 0}, {0, 0, -1}}};
constexpr double distance = 1.5;         // of a child's centre, in radii of its parent: they touch
constexpr Vector first_centre{0, 0, 3};  // what grows down from the first sphere comes to the floor, where z is 0
constexpr double least_mirror = 0.15;
constexpr double most_mirror = 0.45;

/// Of a sphere of radius 1 on which as many further levels grow.
double reach_over(std::int64_t levels) {
  double reach = 1;
  for (std::int64_t level = 0; level < levels; ++level) reach = distance + reach / 2;
  return reach;
}

}  // namespace

std::size_t sphere_count(std::int64_t levels) {
  std::size_t count = 1;
  std::size_t of_level = sides.size();
  for (std::int64_t level = 1; level < levels; ++level) {
    count += of_level;
    of_level *= sides.size() - 1;
  }
  return count;
}

std::vector<Sphere> make_scene(std::int64_t levels) {
  std::vector<Sphere> spheres;
  std::vector<Vector> growth;  // from the parent to the sphere: none grows back
  spheres.reserve(sphere_count(levels));
  growth.reserve(spheres.capacity());
  spheres.push_back({.centre = first_centre, .radius = 1, .reach = reach_over(levels - 1), .mirror = most_mirror});
  growth.push_back({});
  for (std::size_t parent = 0; spheres.size() < spheres.capacity(); ++parent) {
    const Sphere on = spheres[parent];
    spheres[parent].first_child = static_cast<std::int32_t>(spheres.size());
    for (const Vector& side : sides) {
      if (dot(side, growth[parent]) < 0) continue;
      const double radius = on.radius / 2;
      const std::int32_t level = on.level + 1;
      spheres.push_back({.centre = on.centre + distance * on.radius * side,
                         .radius = radius,
                         .reach = radius * reach_over(levels - 1 - level),
                         .mirror = level % 2 == 0 ? most_mirror : least_mirror,
                         .level = level});
      growth.push_back(side);
      ++spheres[parent].children;
    }
  }
  return spheres;
}

}  // namespace fabricbench::shared
