// An image of the scene, in tiles that ranks take from queues, after Raytrace of SPLASH-2 (Woo, Ohara, Torrie, Singh
// and Gupta, "The SPLASH-2 Programs", ISCA 1995). Spheres and image are in shared memory, dealt out in turns: first the
// spheres, then, from a new page on, the tiles, each with its pixels beside each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/shared/memory.hpp"
#include "kernel/shared/scene.hpp"

namespace fabricbench::shared {

/// What is to be traced.
struct Picture {
  std::int64_t size = 0;  // pixels along each side
  std::int64_t levels = 0;
  std::int64_t samples = 1;  // of a pixel along each side: their mean is its colour
  std::int64_t bounces = 0;

  static constexpr std::int64_t tile_side = 16;
  std::int64_t tiles_along() const { return (size + tile_side - 1) / tile_side; }
  std::int64_t tiles() const { return tiles_along() * tiles_along(); }
  std::size_t image_offset(std::size_t page_bytes) const;
  /// Pages that each of the ranks is a home for.
  std::size_t pages_of_each(std::size_t page_bytes, int ranks) const;
};

/// What a rank did, or all of them.
struct Traced {
  std::int64_t rays = 0;
  std::int64_t tiles = 0;
  std::int64_t tiles_of_others = 0;  // from their queues
};

/// What an image is known by, whoever traced which part of it.
struct Image {
  std::uint64_t checksum = 0;
  std::int64_t rays = 0;
};

/// Write this rank's pages of the scene. Collective.
void fill(Memory& memory, const std::vector<Sphere>& scene);

/// Trace tiles until no rank's queue has any: first those of its own, then of the ranks after it. What this rank did.
/// Collective.
Traced trace(Memory& memory, Counters& queues, const Picture& picture);

/// The checksum of the image in shared memory. Collective.
std::uint64_t checksum(Memory& memory, const Picture& picture);

/// The image as ranks trace it from a scene of their own, each a fixed part. Collective.
Image expected_image(MPI_Comm communicator, const Picture& picture, const std::vector<Sphere>& scene);

}  // namespace fabricbench::shared
