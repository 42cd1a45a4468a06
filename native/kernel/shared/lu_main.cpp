// fabricbench-shared-lu: LU factors of a dense matrix without pivoting in a shared memory (memory.hpp), after SPLASH-2
// (lu.hpp). The matrix is n x n in blocks; each block is changed by one rank, its home, and the ranks stand in a grid
// over which blocks are dealt out in both dimensions. A step factors the block on the diagonal, then the blocks below
// and right of it, then takes their products from all further blocks, with a barrier after each of the first two.
//
// A rank reads the blocks of others that it needs, a page at a time, when it needs them, and computes little with each:
// a network shows its latency with small messages, as NIST saw SPLASH's LU over a distributed shared memory do.
//
// Verified by the matrix made again: |L U v - A v| / (eps |A| |v| n) for a random v must be less than 16. Each block is
// computed in one order, so that the factors have the same bits on any number of ranks.
#include <string>

#include "kernel/frame/kernel.hpp"
#include "kernel/shared/lu.hpp"
#include "kernel/shared/page_option.hpp"

namespace {

using namespace fabricbench;
using namespace fabricbench::kernel;

constexpr std::int64_t most_n = 100'000;
constexpr std::int64_t usual_n = 512;
constexpr std::int64_t most_block = 256;
constexpr std::int64_t usual_block = 16;
constexpr double residual_limit = 16;  // HPL's

class SharedLu final : public Problem {
 public:
  explicit SharedLu(const Arguments& arguments)
      : n_(arguments.number("--n", 1, most_n, usual_n)),
        block_(arguments.number("--block", 1, most_block, usual_block)),
        page_bytes_(shared::read_page(arguments)) {}

  std::vector<Parameter> parameters() const override {
    return {{"n", n_}, {"block", block_}, {"page", static_cast<std::int64_t>(page_bytes_)}};
  }

  Result run(MPI_Comm communicator) const override {
    int ranks = 1;
    MPI_Comm_size(communicator, &ranks);
    const shared::Blocks blocks(n_, block_, ranks);
    shared::Memory memory(communicator, blocks.pages_of_each(page_bytes_), page_bytes_, shared::Placement::stretches);
    fill(memory, blocks);
    memory.forget_moved();

    TimedSection timed(communicator);
    factor(memory, blocks);
    const double seconds = timed.end();

    std::int64_t pages = memory.moved().pages_fetched;
    MPI_Allreduce(MPI_IN_PLACE, &pages, 1, MPI_INT64_T, MPI_SUM, communicator);
    const double found = residual(memory, blocks);
    const double operations = shared::operations(n_);
    return {.seconds = seconds,
            .operations = operations,
            .size = std::to_string(n_) + " x " + std::to_string(n_),
            .iterations = static_cast<int>(blocks.along()),
            .checks = {{"residual", found, residual_limit, 0, true}},
            .fingerprint = shared::fingerprint(memory, blocks),
            .values = {{"gflops", operations / seconds * 1e-9},
                       {"residual", found},
                       {"pages_fetched", static_cast<double>(pages)}},
            .facts = {{"grid of ranks",
                       std::to_string(blocks.rows_of_ranks()) + " x " + std::to_string(blocks.columns_of_ranks())}}};
  }

 private:
  std::int64_t n_;
  std::int64_t block_;
  std::size_t page_bytes_;
};

}  // namespace

int main(int argc, char** argv) {
  const Program program{
      .name = "fabricbench-shared-lu",
      .purpose =
          "Factors a dense matrix in blocks that ranks share, over MPI's one-sided calls, as LU of SPLASH-2 does,\n"
          "verifies the factors and tells how fast it was and where the time went.",
      .kernels = {{"shared-lu", "LU over shared memory: many small reads, two barriers a step",
                   read_problem<SharedLu>}},
      .options = {{"--n", "N", "rows and columns of the matrix; default 512"},
                  {"--block", "B", "rows and columns of a block; default 16"},
                  shared::page_option},
      .example = "--n 1024 --block 32"};
  return run_program(program, argc, argv);
}
