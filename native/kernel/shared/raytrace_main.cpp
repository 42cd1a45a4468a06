// fabricbench-shared-raytrace: an image of spheres in a shared memory (memory.hpp), after Raytrace of SPLASH-2
// (raytrace.hpp). The scene is made by a formula (scene.hpp). Each rank has a queue of tiles of the image; one that has
// done its own takes from others' queues, and writes what it traced into the image, which is shared too.
//
// A sphere is fetched with its page when a ray comes near it for the first time, and then computed with again and
// again: a network shows little, as NIST saw SPLASH's Raytrace over a distributed shared memory do.
//
// Verified by every rank tracing a part again, from a scene of its own and alone: the checksum of the image and the
// number of rays must be the same. Neither depends on the number of ranks, nor on who traced what.
#include <array>
#include <string>

#include "kernel/frame/kernel.hpp"
#include "kernel/shared/page_option.hpp"
#include "kernel/shared/raytrace.hpp"

namespace {

using namespace fabricbench;
using namespace fabricbench::kernel;

constexpr std::int64_t most_size = 32'768;
constexpr std::int64_t usual_size = 512;
constexpr std::int64_t usual_levels = 6;
constexpr std::int64_t most_samples = 16;
constexpr std::int64_t usual_samples = 2;
constexpr std::int64_t most_bounces = 16;
constexpr std::int64_t usual_bounces = 4;

/// What a double holds exactly of a checksum.
double as_number(std::uint64_t checksum) { return static_cast<double>(checksum >> 11U); }

class SharedRaytrace final : public Problem {
 public:
  explicit SharedRaytrace(const Arguments& arguments)
      : picture_{.size = arguments.number("--size", 1, most_size, usual_size),
                 .levels = arguments.number("--levels", 1, shared::most_levels, usual_levels),
                 .samples = arguments.number("--samples", 1, most_samples, usual_samples),
                 .bounces = arguments.number("--bounces", 0, most_bounces, usual_bounces)},
        page_bytes_(shared::read_page(arguments)) {}

  std::vector<Parameter> parameters() const override {
    return {{"size", picture_.size},
            {"levels", picture_.levels},
            {"samples", picture_.samples},
            {"bounces", picture_.bounces},
            {"page", static_cast<std::int64_t>(page_bytes_)}};
  }

  Result run(MPI_Comm communicator) const override {
    int ranks = 1;
    MPI_Comm_size(communicator, &ranks);
    const std::vector<shared::Sphere> scene = shared::make_scene(picture_.levels);
    shared::Memory memory(communicator, picture_.pages_of_each(page_bytes_, ranks), page_bytes_,
                          shared::Placement::turns);
    shared::Counters queues(communicator);
    fill(memory, scene);
    memory.forget_moved();

    TimedSection timed(communicator);
    const shared::Traced own = trace(memory, queues, picture_);
    const double seconds = timed.end();

    const std::uint64_t found = shared::checksum(memory, picture_);
    const shared::Image expected = shared::expected_image(communicator, picture_, scene);
    std::array<std::int64_t, 4> sums{own.rays, own.tiles_of_others, memory.moved().pages_fetched,
                                     memory.moved().bytes_put};
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_INT64_T, MPI_SUM, communicator);
    const auto [rays, tiles_of_others, pages_fetched, bytes_put] = sums;
    return {.seconds = seconds,
            .operations = static_cast<double>(rays),
            .operation_unit = "rays traced",
            .size = std::to_string(picture_.size) + " x " + std::to_string(picture_.size) + ", " +
                    std::to_string(scene.size()) + " spheres",
            .iterations = 1,
            .checks = {{"image", as_number(found), as_number(expected.checksum)},
                       {"rays", static_cast<double>(rays), static_cast<double>(expected.rays)}},
            .fingerprint = found,
            .values = {{"mrays_per_second", static_cast<double>(rays) / seconds * 1e-6},
                       {"tiles_of_others", static_cast<double>(tiles_of_others)},
                       {"pages_fetched", static_cast<double>(pages_fetched)},
                       {"bytes_put", static_cast<double>(bytes_put)}}};
  }

 private:
  shared::Picture picture_;
  std::size_t page_bytes_;
};

}  // namespace

int main(int argc, char** argv) {
  const Program program{
      .name = "fabricbench-shared-raytrace",
      .purpose =
          "Traces rays through a scene that ranks share, over MPI's one-sided calls, as Raytrace of SPLASH-2 does,\n"
          "verifies the image and tells how fast it was and where the time went.",
      .kernels = {{"shared-raytrace", "rays through a shared scene: a page is fetched once and used often",
                   read_problem<SharedRaytrace>}},
      .options = {{"--size", "N", "pixels along each side of the image; default 512"},
                  {"--levels", "L", "of spheres that grow on spheres, 1 to 8; default 6"},
                  {"--samples", "S", "rays from the eye along each side of a pixel, S x S for it; default 2"},
                  {"--bounces", "B", "how often a ray is mirrored at most; default 4"},
                  shared::page_option},
      .example = "--size 1024 --levels 7"};
  return run_program(program, argc, argv);
}
