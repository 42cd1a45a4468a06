// The scene of the ray tracer, made by a formula: a sphere with a sphere of half its size on each of its six sides,
// each of those with five more, and so on, over a chequered floor. Spheres are the tree by which rays find them: each
// knows how far from its centre everything reaches that grows on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fabricbench::shared {

struct Vector {
  double x = 0;
  double y = 0;
  double z = 0;
};

constexpr Vector operator+(const Vector& a, const Vector& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
constexpr Vector operator-(const Vector& a, const Vector& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
constexpr Vector operator*(double factor, const Vector& a) { return {factor * a.x, factor * a.y, factor * a.z}; }
constexpr double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

/// A sphere; its size divides that of every page.
struct alignas(64) Sphere {
  Vector centre;
  double radius = 0;
  double reach = 0;              // from the centre, of all that grows on it
  std::int32_t first_child = 0;  // they are beside each other
  std::int32_t children = 0;
  double mirror = 0;  // share of the light that it reflects
  std::int32_t level = 0;
};
static_assert(sizeof(Sphere) == 64);

inline constexpr std::int64_t most_levels = 8;

/// How many spheres there are in a scene of so many levels, from 1: 1, 7, 37, 187, ...
std::size_t sphere_count(std::int64_t levels);

/// All of them, the first is that which all others grow on.
std::vector<Sphere> make_scene(std::int64_t levels);

}  // namespace fabricbench::shared
