// A ray tracer after Whitted ("An improved illumination model for shaded display", CACM 1980): rays from the eye
// through each pixel, a ray to each of two lights from what they meet, and a mirrored one as often as the surface
// shines and is asked for. Sums, products, quotients and square roots alone, each of which IEEE 754 gives its bits: an
// image is the same whoever computes it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernel/shared/scene.hpp"

namespace fabricbench::shared {

/// Spheres is a function from a sphere's number to it; where it is kept is its own matter. Asked for again, a sphere
/// must be where it was.
template <class Spheres>
class Tracer {
 public:
  Tracer(Spheres spheres, std::int64_t image_size, std::int64_t samples, std::int64_t bounces)
      : spheres_(spheres), half_(static_cast<double>(image_size * samples) / 2), samples_(samples), bounces_(bounces) {}

  /// The colour of a pixel: 255, blue, green, red, from the highest byte; so it is never 0.
  std::uint32_t pixel(std::int64_t row, std::int64_t column) {
    Vector sum{};
    for (std::int64_t i = row * samples_; i < (row + 1) * samples_; ++i) {
      for (std::int64_t j = column * samples_; j < (column + 1) * samples_; ++j) sum = sum + sample(i, j);
    }
    return packed(1 / static_cast<double>(samples_ * samples_) * sum);
  }

  /// Since it was made: from the eye, to the lights, and mirrored ones.
  std::int64_t rays() const { return rays_; }

 private:
  static constexpr double nowhere = std::numeric_limits<double>::infinity();
  static constexpr double lift = 1e-9;  // off a surface, so that a ray does not meet what it comes from
  static constexpr double farthest_floor = 1000;
  static constexpr std::size_t stack_size = 6 * static_cast<std::size_t>(most_levels);

  // Ten from the first sphere, above it and to its side; directions of length 1.
  static constexpr Vector eye{8, 6, 5.5};
  static constexpr Vector forward{-0.768, -0.576, -0.28};
  static constexpr Vector rightward{-0.6, 0.8, 0};
  static constexpr Vector upward{-0.224, -0.168, 0.96};
  static constexpr double view_width = 0.42;
  static constexpr double ambient = 0.15;
  struct Light {
    Vector towards;
    double strength;
  };
  static constexpr std::array<Light, 2> lights{{{{0.48, -0.6, 0.64}, 0.6}, {{0.36, 0.48, 0.8}, 0.35}}};

  struct Hit {
    double distance = nowhere;
    Vector normal;
    Vector tint;
    double mirror = 0;
  };

  static Vector unit(const Vector& a) { return 1 / std::sqrt(dot(a, a)) * a; }
  static Vector sky(const Vector& direction) {
    const double height = std::max(direction.z, 0.0);
    return {0.7 - 0.4 * height, 0.8 - 0.3 * height, 0.95 - 0.1 * height};
  }
  static Vector tint_of(std::int32_t level) {
    static constexpr std::array<Vector, 4> tints{
        {{0.9, 0.75, 0.4}, {0.8, 0.3, 0.25}, {0.35, 0.6, 0.85}, {0.45, 0.75, 0.4}}};
    return tints[static_cast<std::size_t>(level) % tints.size()];
  }
  static std::uint32_t packed(const Vector& colour) {
    const auto byte = [](double value) { return static_cast<std::uint32_t>(std::min(value * 256, 255.0)); };
    return 0xff000000U | byte(colour.z) << 16U | byte(colour.y) << 8U | byte(colour.x);
  }

  Vector sample(std::int64_t row, std::int64_t column) {
    const double right = (static_cast<double>(column) + 0.5 - half_) / half_;
    const double up = (half_ - static_cast<double>(row) - 0.5) / half_;
    Vector origin = eye;
    Vector direction = unit(forward + view_width * right * rightward + view_width * up * upward);
    Vector colour{};
    double share = 1;
    for (std::int64_t bounce = 0;; ++bounce) {
      ++rays_;
      const Hit hit = nearest(origin, direction);
      if (hit.distance == nowhere) return colour + share * sky(direction);
      const Vector point = origin + hit.distance * direction;
      const double mirrored = bounce < bounces_ ? hit.mirror : 0;
      colour = colour + share * (1 - mirrored) * lit(hit, point);
      if (mirrored == 0) return colour;
      share *= mirrored;
      origin = point + lift * hit.normal;
      direction = unit(direction - 2 * dot(direction, hit.normal) * hit.normal);
    }
  }

  /// Where a ray enters a sphere, or that it does not. From within it is 0 where it may end anywhere inside.
  static double entry(const Vector& origin, const Vector& direction, const Vector& centre, double radius,
                      bool may_begin_inside) {
    const Vector from_centre = origin - centre;
    const double b = dot(from_centre, direction);
    const double c = dot(from_centre, from_centre) - radius * radius;
    if (c <= 0) return may_begin_inside ? 0 : nowhere;
    if (b > 0 || b * b < c) return nowhere;
    return -b - std::sqrt(b * b - c);
  }

  /// Call `visit(sphere, distance)` for spheres that the ray meets nearer than `limit`, which it may lower; true ends
  /// it.
  template <class Visit>
  void for_each_met(const Vector& origin, const Vector& direction, double& limit, Visit visit) {
    std::array<std::int32_t, stack_size> stack{};
    std::size_t depth = 1;  // the first sphere is on it
    while (depth > 0) {
      const Sphere& sphere = spheres_(stack[--depth]);
      if (sphere.children > 0) {
        if (entry(origin, direction, sphere.centre, sphere.reach, true) >= limit) continue;
        for (std::int32_t child = 0; child < sphere.children; ++child) stack[depth++] = sphere.first_child + child;
      }
      const double distance = entry(origin, direction, sphere.centre, sphere.radius, false);
      if (distance < limit && visit(sphere, distance)) return;
    }
  }

  Hit nearest(const Vector& origin, const Vector& direction) {
    Hit hit;
    double limit = nowhere;
    const Sphere* met = nullptr;
    for_each_met(origin, direction, limit, [&](const Sphere& sphere, double distance) {
      limit = distance;
      met = &sphere;
      return false;
    });
    if (met != nullptr) {
      const Vector point = origin + limit * direction;
      hit = {limit, 1 / met->radius * (point - met->centre), tint_of(met->level), met->mirror};
    }
    if (direction.z < 0) {
      const double distance = -origin.z / direction.z;
      if (distance < limit && distance < farthest_floor) hit = floor_at(origin + distance * direction, distance);
    }
    return hit;
  }

  static Hit floor_at(const Vector& point, double distance) {
    const auto square = static_cast<std::int64_t>(std::floor(point.x) + std::floor(point.y));
    const double shade = square % 2 == 0 ? 0.85 : 0.25;
    return {distance, {0, 0, 1}, {shade, shade, shade}, 0.2};
  }

  Vector lit(const Hit& hit, const Vector& point) {
    double strength = ambient;
    for (const Light& light : lights) {
      const double slope = dot(hit.normal, light.towards);
      if (slope <= 0) continue;
      ++rays_;
      bool is_in_shadow = false;
      double limit = nowhere;
      for_each_met(point + lift * hit.normal, light.towards, limit, [&](const Sphere&, double) {
        is_in_shadow = true;
        return true;
      });
      if (!is_in_shadow) strength += light.strength * slope;
    }
    return strength * hit.tint;
  }

  Spheres spheres_;
  double half_;  // of the image, in samples
  std::int64_t samples_;
  std::int64_t bounces_;
  std::int64_t rays_ = 0;
};

}  // namespace fabricbench::shared
