#include "kernel/shared/raytrace.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "kernel/shared/tracer.hpp"

namespace fabricbench::shared {
namespace {

constexpr auto tile_side = static_cast<std::size_t>(Picture::tile_side);
constexpr std::size_t row_bytes = tile_side * sizeof(std::uint32_t);
constexpr std::size_t tile_bytes = tile_side * row_bytes;

/// The sum of these over an image is its checksum. No bit of a pixel is lost, nor where it is.
std::uint64_t weight(std::int64_t tile, std::size_t row, std::size_t column, std::uint32_t colour) {
  const std::uint64_t place = (static_cast<std::uint64_t>(tile) * tile_side + row) * tile_side + column;
  return mixed(mixed(place) ^ colour);
}

/// Trace a tile and call `take(row, pixels)` with each row of it, and `pause()` after each pixel.
template <class Spheres, class Take, class Pause>
void trace_tile(Tracer<Spheres>& tracer, const Picture& picture, std::int64_t tile, Take take, Pause pause) {
  const std::int64_t top = tile / picture.tiles_along() * Picture::tile_side;
  const std::int64_t left = tile % picture.tiles_along() * Picture::tile_side;
  const auto rows = static_cast<std::size_t>(std::min(Picture::tile_side, picture.size - top));
  const auto columns = static_cast<std::size_t>(std::min(Picture::tile_side, picture.size - left));
  std::array<std::uint32_t, tile_side> pixels{};
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      pixels[column] = tracer.pixel(top + static_cast<std::int64_t>(row), left + static_cast<std::int64_t>(column));
      pause();
    }
    take(row, std::span(pixels).first(columns));
  }
}

std::int64_t first_tile_of(const Picture& picture, int rank, int ranks) { return picture.tiles() * rank / ranks; }

}  // namespace

std::size_t Picture::image_offset(std::size_t page_bytes) const {
  return (sphere_count(levels) * sizeof(Sphere) + page_bytes - 1) / page_bytes * page_bytes;
}

std::size_t Picture::pages_of_each(std::size_t page_bytes, int ranks) const {
  const std::size_t bytes = image_offset(page_bytes) + static_cast<std::size_t>(tiles()) * tile_bytes;
  const std::size_t of_a_round = page_bytes * static_cast<std::size_t>(ranks);
  return (bytes + of_a_round - 1) / of_a_round;
}

void fill(Memory& memory, const std::vector<Sphere>& scene) {
  for (std::size_t i = 0; i < scene.size(); ++i) {
    const std::size_t offset = i * sizeof(Sphere);
    if (memory.is_home(offset)) std::memcpy(memory.own(offset), &scene[i], sizeof(Sphere));
  }
  memory.barrier();
}

Traced trace(Memory& memory, Counters& queues, const Picture& picture) {
  Tracer tracer(
      [&memory](std::int32_t i) -> const Sphere& {
        const std::size_t offset = static_cast<std::size_t>(i) * sizeof(Sphere);
        return *reinterpret_cast<const Sphere*>(memory.read(offset, sizeof(Sphere)));
      },
      picture.size, picture.samples, picture.bounces);
  const std::size_t image = picture.image_offset(memory.page_bytes());
  Traced traced;
  for (int next = 0; next < memory.ranks(); ++next) {
    const int queue = (memory.rank() + next) % memory.ranks();
    const std::int64_t first = first_tile_of(picture, queue, memory.ranks());
    const std::int64_t end = first_tile_of(picture, queue + 1, memory.ranks());
    for (std::int64_t tile = first + queues.take(queue); tile < end; tile = first + queues.take(queue)) {
      const std::size_t offset = image + static_cast<std::size_t>(tile) * tile_bytes;
      trace_tile(
          tracer, picture, tile,
          [&](std::size_t row, std::span<const std::uint32_t> pixels) {
            memory.write(offset + row * row_bytes, std::as_bytes(pixels));
          },
          [&] { memory.serve(); });
      ++traced.tiles;
      traced.tiles_of_others += queue == memory.rank() ? 0 : 1;
    }
  }
  memory.barrier();
  traced.rays = tracer.rays();
  return traced;
}

std::uint64_t checksum(Memory& memory, const Picture& picture) {
  const std::size_t image = picture.image_offset(memory.page_bytes());
  std::uint64_t sum = 0;
  for (std::int64_t tile = 0; tile < picture.tiles(); ++tile) {
    for (std::size_t row = 0; row < tile_side; ++row) {
      const std::size_t offset = image + static_cast<std::size_t>(tile) * tile_bytes + row * row_bytes;
      if (!memory.is_home(offset)) continue;
      std::array<std::uint32_t, tile_side> pixels{};
      std::memcpy(pixels.data(), memory.own(offset), row_bytes);
      for (std::size_t column = 0; column < tile_side; ++column)
        sum += pixels[column] == 0 ? 0 : weight(tile, row, column, pixels[column]);
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, memory.communicator());
  return sum;
}

Image expected_image(MPI_Comm communicator, const Picture& picture, const std::vector<Sphere>& scene) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  Tracer tracer([&scene](std::int32_t i) -> const Sphere& { return scene[static_cast<std::size_t>(i)]; }, picture.size,
                picture.samples, picture.bounces);
  Image image;
  for (std::int64_t tile = rank; tile < picture.tiles(); tile += ranks) {
    trace_tile(
        tracer, picture, tile,
        [&](std::size_t row, std::span<const std::uint32_t> pixels) {
          for (std::size_t column = 0; column < pixels.size(); ++column)
            image.checksum += weight(tile, row, column, pixels[column]);
        },
        [] {});
  }
  image.rays = tracer.rays();
  MPI_Allreduce(MPI_IN_PLACE, &image.checksum, 1, MPI_UINT64_T, MPI_SUM, communicator);
  MPI_Allreduce(MPI_IN_PLACE, &image.rays, 1, MPI_INT64_T, MPI_SUM, communicator);
  return image;
}

}  // namespace fabricbench::shared
