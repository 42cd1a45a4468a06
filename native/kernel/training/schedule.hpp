// What one rank does in a step of distributed training, as a list of instructions: which loads its accelerator
// computes, what it exchanges with whom, in which order. Pure: made from the model's dimensions and the grid of ranks
// before anything is timed, so that a step is a walk along a list.
//
// Ranks are numbered as Megatron-LM numbers them (Narayanan et al., "Efficient Large-Scale Language Model Training on
// GPU Clusters Using Megatron-LM", SC21): those of a tensor group next to each other, then data, then stages of the
// pipeline.
//
// * Pipeline: stages have equal parts of the layers, and micro-batches go through them by the schedule 1F1B of that
//   paper.
// * Tensor: two allreduces of a micro-batch's activations in each layer, forward and backward (Shoeybi et al.,
//   "Megatron-LM", arXiv 1909.08053), each of which what follows waits for.
// * Data: gradients are reduced in buckets during the backward pass of the last micro-batch, the last layer's first,
//   while the layers before are computed (Li et al., "PyTorch Distributed", VLDB 2020).
// * Experts: the ranks of a data group share the experts of each layer; all-to-alls bring tokens to them and back,
//   forward and backward (Lepikhin et al., "GShard", arXiv 2006.16668), the same number to each. Gradients of experts
//   are reduced among the ranks that have the same ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fabricbench::training {

/// Of one model, as it is asked for. Counts of parameters are of whole layers; times are those of one rank.
struct Dimensions {
  std::int64_t layers = 1;
  std::int64_t hidden = 0;  // 0: activations are not told, and only data parallelism is possible
  std::int64_t sequence = 1;
  std::int64_t layer_parameters = 1;   // of a layer without its experts
  std::int64_t expert_parameters = 0;  // of one expert in one layer
  std::int64_t experts = 0;            // 0: a dense model
  std::int64_t experts_per_token = 0;
  std::int64_t embedding_parameters = 0;  // on the first stage
  std::int64_t head_parameters = 0;       // on the last one
  std::int64_t micro_batch = 1;           // samples
  std::int64_t micro_batches = 1;         // of a step, on each replica
  std::int64_t bucket_bytes = 1;
  std::int64_t element_bytes = 2;
  std::int64_t layer_ns = 0;  // of a micro-batch forward; backward takes twice as long
  std::int64_t head_ns = 0;
  std::int64_t scale = 1;  // elements, buckets and times are divided by it
};

/// How many ranks share the batch, a layer and the layers.
struct Grid {
  int data = 1;
  int tensor = 1;
  int pipeline = 1;
  int ranks() const { return data * tensor * pipeline; }
};

/// Where a rank is in the grid.
struct Place {
  int data = 0;
  int tensor = 0;
  int stage = 0;
};
Place place_of(const Grid& grid, int rank);
int rank_at(const Grid& grid, const Place& place);

/// How many ranks next to each other in a data group share the experts: as many as divide both.
int expert_group(const Dimensions& dimensions, const Grid& grid);

/// Elements of one rank, scaled; nothing that is there is scaled to nothing.
struct Sizes {
  std::size_t layer = 0;  // gradients
  std::size_t experts = 0;
  std::size_t embedding = 0;
  std::size_t head = 0;
  std::size_t bucket = 1;
  std::size_t activations = 0;  // of a micro-batch, as an allreduce and a message between stages have them
  std::size_t tokens = 0;       // of a micro-batch, for each rank of an expert group
};
Sizes sizes_of(const Dimensions& dimensions, const Grid& grid);

enum class Act {
  compute,              // `value` nanoseconds
  reduce_activations,   // within the tensor group; what follows waits for it
  exchange_tokens,      // within the expert group, likewise
  receive_activations,  // from the stage before
  send_activations,     // to the stage behind
  receive_gradients,    // from the stage behind
  send_gradients,       // to the stage before
  reduce_bucket,        // number `value`, begun and left under way
};

struct Instruction {
  Act act = Act::compute;
  std::uint64_t value = 0;
  bool operator==(const Instruction&) const = default;
};

/// Gradients that are reduced together.
struct Bucket {
  std::size_t begin = 0;  // among the gradients of its kind
  std::size_t elements = 0;
  bool is_of_experts = false;
  bool operator==(const Bucket&) const = default;
};

/// One rank's step. All ranks of a stage have the same one.
struct Step {
  std::vector<Instruction> instructions;
  std::vector<Bucket> buckets;
  /// The step without its traffic. Stages still tell each other when they are ready, by messages without content.
  std::vector<Instruction> without_traffic() const;
  std::vector<Instruction> without_computing() const;
  std::uint64_t computing_ns() const;
};
Step make_step(const Dimensions& dimensions, const Grid& grid, int stage);

/// Bytes that all ranks together hand to MPI in a step, each once: what a collective means, not what becomes of it.
struct Bytes {
  double gradients = 0;
  double tensor = 0;
  double pipeline = 0;
  double experts = 0;
  double all() const { return gradients + tensor + pipeline + experts; }
};
/// From the dimensions alone, without any list.
Bytes expected_bytes(const Dimensions& dimensions, const Grid& grid);

}  // namespace fabricbench::training
