#include "kernel/training/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fabricbench::training {
namespace {

std::int64_t rounded_up(std::int64_t number, std::int64_t divisor) { return (number + divisor - 1) / divisor; }

/// Layers of the model before a stage.
std::int64_t layers_before(const Dimensions& dimensions, const Grid& grid, int stage) {
  return dimensions.layers * stage / grid.pipeline;
}

/// Cuts gradients, as they become ready, into buckets.
class Filling {
 public:
  Filling(Step& step, std::size_t bucket, bool is_of_experts, bool is_reduced)
      : step_(step), bucket_(bucket), is_of_experts_(is_of_experts), is_reduced_(is_reduced) {}

  void add(std::size_t elements) {
    if (!is_reduced_) return;
    ready_ += elements;
    while (ready_ >= bucket_) reduce(bucket_);
  }
  void end() {
    if (ready_ > 0) reduce(ready_);
  }

 private:
  void reduce(std::size_t elements) {
    step_.instructions.push_back({Act::reduce_bucket, step_.buckets.size()});
    step_.buckets.push_back({begin_, elements, is_of_experts_});
    begin_ += elements;
    ready_ -= elements;
  }

  Step& step_;
  std::size_t bucket_;
  bool is_of_experts_;
  bool is_reduced_;
  std::size_t begin_ = 0;
  std::size_t ready_ = 0;
};

class Maker {
 public:
  Maker(const Dimensions& dimensions, const Grid& grid, int stage)
      : sizes_(sizes_of(dimensions, grid)),
        layers_(layers_before(dimensions, grid, stage + 1) - layers_before(dimensions, grid, stage)),
        is_first_(stage == 0),
        is_last_(stage == grid.pipeline - 1),
        has_tensor_group_(grid.tensor > 1),
        has_expert_group_(expert_group(dimensions, grid) > 1),
        layer_ns_(static_cast<std::uint64_t>(dimensions.layer_ns / dimensions.scale)),
        head_ns_(static_cast<std::uint64_t>(dimensions.head_ns / dimensions.scale)),
        dense_(step_, sizes_.bucket, false, grid.data > 1),
        experts_(step_, sizes_.bucket, true, grid.data / expert_group(dimensions, grid) > 1) {}

  /// 1F1B: as many micro-batches forward as there are stages behind this one, then one backward for each further one.
  Step make(std::int64_t micro_batches, std::int64_t stages_behind) {
    const std::int64_t ahead = std::min(stages_behind, micro_batches);
    for (std::int64_t batch = 0; batch < ahead; ++batch) forward();
    for (std::int64_t batch = 0; batch < micro_batches; ++batch) {
      if (batch + ahead < micro_batches) forward();
      backward(batch == micro_batches - 1);
    }
    return std::move(step_);
  }

 private:
  void add(Act act) { step_.instructions.push_back({act, 0}); }
  void compute(std::uint64_t ns) {
    if (ns > 0) step_.instructions.push_back({Act::compute, ns});
  }
  void attention(std::uint64_t ns) {
    compute(ns / 2);
    if (has_tensor_group_) add(Act::reduce_activations);
  }
  void feed_forward(std::uint64_t ns) {
    if (has_expert_group_) add(Act::exchange_tokens);
    compute(ns - ns / 2);
    if (has_expert_group_) add(Act::exchange_tokens);
    if (has_tensor_group_) add(Act::reduce_activations);
  }

  void forward() {
    if (!is_first_) add(Act::receive_activations);
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      attention(layer_ns_);
      feed_forward(layer_ns_);
    }
    if (is_last_) compute(head_ns_);
    if (!is_last_) add(Act::send_activations);
  }

  void backward(bool is_last_batch) {
    if (!is_last_) add(Act::receive_gradients);
    if (is_last_) {
      compute(2 * head_ns_);
      if (is_last_batch) dense_.add(sizes_.head);
    }
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      feed_forward(2 * layer_ns_);
      attention(2 * layer_ns_);
      if (!is_last_batch) continue;
      dense_.add(sizes_.layer);
      experts_.add(sizes_.experts);
    }
    if (!is_first_) add(Act::send_gradients);
    if (!is_last_batch) return;
    if (is_first_) dense_.add(sizes_.embedding);
    dense_.end();
    experts_.end();
  }

  Step step_;
  Sizes sizes_;
  std::int64_t layers_;
  bool is_first_;
  bool is_last_;
  bool has_tensor_group_;
  bool has_expert_group_;
  std::uint64_t layer_ns_;
  std::uint64_t head_ns_;
  Filling dense_;
  Filling experts_;
};

bool is_between_stages(Act act) {
  return act == Act::receive_activations || act == Act::send_activations || act == Act::receive_gradients ||
         act == Act::send_gradients;
}

}  // namespace

Place place_of(const Grid& grid, int rank) {
  return {
      .data = rank / grid.tensor % grid.data, .tensor = rank % grid.tensor, .stage = rank / (grid.tensor * grid.data)};
}

int rank_at(const Grid& grid, const Place& place) {
  return (place.stage * grid.data + place.data) * grid.tensor + place.tensor;
}

int expert_group(const Dimensions& dimensions, const Grid& grid) {
  return dimensions.experts == 0 ? 1 : static_cast<int>(std::gcd(dimensions.experts, std::int64_t{grid.data}));
}

Sizes sizes_of(const Dimensions& dimensions, const Grid& grid) {
  const auto scaled = [&](std::int64_t elements, std::int64_t shared_by) {
    return static_cast<std::size_t>(rounded_up(rounded_up(elements, shared_by), dimensions.scale));
  };
  const std::int64_t group = expert_group(dimensions, grid);
  const std::int64_t activations = dimensions.micro_batch * dimensions.sequence * dimensions.hidden;
  return {.layer = scaled(dimensions.layer_parameters, grid.tensor),
          .experts = scaled(dimensions.experts / group * dimensions.expert_parameters, grid.tensor),
          .embedding = scaled(dimensions.embedding_parameters, grid.tensor),
          .head = scaled(dimensions.head_parameters, grid.tensor),
          .bucket = scaled(dimensions.bucket_bytes, dimensions.element_bytes),
          .activations = scaled(activations, 1),
          .tokens = scaled(activations * dimensions.experts_per_token, group * grid.tensor)};
}

std::vector<Instruction> Step::without_traffic() const {
  std::vector<Instruction> kept;
  std::ranges::copy_if(instructions, std::back_inserter(kept),
                       [](const Instruction& each) { return each.act == Act::compute || is_between_stages(each.act); });
  return kept;
}

std::vector<Instruction> Step::without_computing() const {
  std::vector<Instruction> kept;
  std::ranges::copy_if(instructions, std::back_inserter(kept),
                       [](const Instruction& each) { return each.act != Act::compute; });
  return kept;
}

std::uint64_t Step::computing_ns() const {
  std::uint64_t sum = 0;
  for (const Instruction& each : instructions) sum += each.act == Act::compute ? each.value : 0;
  return sum;
}

Step make_step(const Dimensions& dimensions, const Grid& grid, int stage) {
  return Maker(dimensions, grid, stage).make(dimensions.micro_batches, grid.pipeline - 1 - stage);
}

Bytes expected_bytes(const Dimensions& dimensions, const Grid& grid) {
  const Sizes sizes = sizes_of(dimensions, grid);
  const int group = expert_group(dimensions, grid);
  const auto element = static_cast<double>(dimensions.element_bytes);
  const auto layers = static_cast<double>(dimensions.layers);
  const auto replicas = static_cast<double>(grid.data * grid.tensor);
  // Of each layer two forward and two backward, for every micro-batch.
  const double rounds = replicas * layers * 4 * static_cast<double>(dimensions.micro_batches);
  Bytes bytes;
  if (grid.data > 1) {
    const double own = layers * static_cast<double>(sizes.layer) + static_cast<double>(sizes.embedding + sizes.head);
    bytes.gradients = replicas * own * element;
  }
  if (grid.data > group) bytes.gradients += replicas * layers * static_cast<double>(sizes.experts) * element;
  if (grid.tensor > 1) bytes.tensor = rounds * static_cast<double>(sizes.activations) * element;
  if (group > 1) bytes.experts = rounds * (group - 1) * static_cast<double>(sizes.tokens) * element;
  bytes.pipeline = replicas * (grid.pipeline - 1) * 2 * static_cast<double>(dimensions.micro_batches) *
                   static_cast<double>(sizes.activations) * element;
  return bytes;
}

}  // namespace fabricbench::training
