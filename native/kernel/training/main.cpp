// fabricbench-training-step: the traffic of a step of distributed training, data-, tensor-, pipeline- and
// expert-parallel, beside a computing load (schedule.hpp says what goes where, accelerator.hpp what the load is).
//
// Steps are timed three times in one launch: whole, without traffic, and without computing. What the whole step takes
// beyond the one without traffic is exposed communication; what the one without computing takes beyond that was hidden
// behind the load. Waiting for other stages of a pipeline is no communication: without traffic they wait as well.
//
// Verified: every element of every message in a step that is not timed, three of each in those that are, gradients the
// same on all replicas, and bytes by kind as a formula has them beside those that the frame has counted.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "kernel/frame/kernel.hpp"
#include "kernel/frame/profile.hpp"
#include "kernel/training/exchange.hpp"
#include "kernel/training/schedule.hpp"

namespace {

using namespace fabricbench;
using namespace fabricbench::kernel;
using training::Dimensions;
using training::Grid;

constexpr std::int64_t most_experts = 10'000;
constexpr std::int64_t most_parameters = 100'000'000'000'000;  // times most_experts they fit 64 bits
constexpr std::int64_t most_ns = 3'600'000'000'000;
constexpr std::int64_t most_ranks = 1'000'000;
constexpr double least_load_share = 1e-3;  // that may be lacking, of the load of the slowest rank

/// An option of one number, which is told and recorded alike.
struct Number {
  std::string_view option;
  std::string_view name;
  std::int64_t Dimensions::* where;
  std::int64_t least;
  std::int64_t most;
  std::int64_t usual;
  std::string_view meaning;
};

constexpr std::array numbers{
    Number{"--layers", "layers", &Dimensions::layers, 1, 10'000, 4, "layers of the model; default 4"},
    Number{"--hidden", "hidden", &Dimensions::hidden, 0, 1'000'000, 256,
           "width of its activations; default 256. 0: they are not told, for data parallelism alone"},
    Number{"--sequence", "sequence", &Dimensions::sequence, 1, 1'000'000, 128, "tokens of a sample; default 128"},
    Number{"--layer-parameters", "layer_parameters", &Dimensions::layer_parameters, 1, most_parameters, 786'432,
           "of a layer without its experts; default 786432"},
    Number{"--expert-parameters", "expert_parameters", &Dimensions::expert_parameters, 0, most_parameters, 0,
           "of one expert in a layer; default 0"},
    Number{"--experts", "experts", &Dimensions::experts, 0, most_experts, 0, "of each layer; default 0, a dense model"},
    Number{"--experts-per-token", "experts_per_token", &Dimensions::experts_per_token, 1, 64, 2,
           "to which a token goes; default 2"},
    Number{"--embedding-parameters", "embedding_parameters", &Dimensions::embedding_parameters, 0, most_parameters, 0,
           "before the first layer; default 0"},
    Number{"--head-parameters", "head_parameters", &Dimensions::head_parameters, 0, most_parameters, 0,
           "after the last layer; default 0"},
    Number{"--micro-batch", "micro_batch", &Dimensions::micro_batch, 1, 10'000, 1, "samples of one; default 1"},
    Number{"--micro-batches", "micro_batches", &Dimensions::micro_batches, 1, 10'000, 1,
           "of a step on each replica; default 1"},
    Number{"--bucket-bytes", "bucket_bytes", &Dimensions::bucket_bytes, 8, std::int64_t{1} << 40U, 26'214'400,
           "gradients that are reduced together; default 26214400"},
    Number{"--element-bytes", "element_bytes", &Dimensions::element_bytes, 2, 8, 2,
           "of a gradient and an activation: 2, 4 or 8; default 2"},
    Number{"--layer-ns", "layer_ns", &Dimensions::layer_ns, 0, most_ns, 1'000'000,
           "computing of a layer for a micro-batch forward, on each rank; default 1000000"},
    Number{"--head-ns", "head_ns", &Dimensions::head_ns, 0, most_ns, 0, "likewise after the last layer; default 0"},
    Number{"--scale", "scale", &Dimensions::scale, 1, 1'000'000'000, 1,
           "what messages, buckets and computing are divided by; default 1"},
};

double across(double own, MPI_Op operation, MPI_Comm communicator) {
  MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, operation, communicator);
  return own;
}

/// Bytes of all ranks by the calls that carry them, as the frame has counted them in the timed section.
training::Bytes counted_bytes(MPI_Comm communicator) {
  const auto of = [communicator](std::string_view name) {
    const auto index = static_cast<std::size_t>(std::ranges::find(counted_calls, name) - counted_calls.begin());
    return across(static_cast<double>(counts().calls[index].bytes), MPI_SUM, communicator);
  };
  return {.gradients = of("MPI_Iallreduce"),
          .tensor = of("MPI_Allreduce"),
          .pipeline = of("MPI_Isend"),
          .experts = of("MPI_Alltoall")};
}

/// Seconds of a step.
struct Times {
  double whole = 0;
  double computing = 0;      // without traffic
  double communication = 0;  // without computing
};

class TrainingStep final : public Problem {
 public:
  explicit TrainingStep(const Arguments& arguments)
      : model_(arguments.text("--model", "of one's own")),
        data_(static_cast<int>(arguments.number("--dp", 0, most_ranks, 0))),
        tensor_(static_cast<int>(arguments.number("--tp", 1, most_ranks, 1))),
        pipeline_(static_cast<int>(arguments.number("--pp", 1, most_ranks, 1))),
        steps_(static_cast<int>(arguments.number("--steps", 1, 1'000'000, 5))) {
    for (const Number& each : numbers)
      dimensions_.*each.where = arguments.number(each.option, each.least, each.most, each.usual);
    check();
  }

  std::vector<Parameter> parameters() const override {
    std::vector<Parameter> all{{"model", std::string(model_)},
                               {"dp", std::int64_t{data_}},
                               {"tp", std::int64_t{tensor_}},
                               {"pp", std::int64_t{pipeline_}}};
    for (const Number& each : numbers) all.push_back({each.name, dimensions_.*each.where});
    all.push_back({"steps", std::int64_t{steps_}});
    return all;
  }

  std::optional<std::string> refusal(int ranks) const override {
    const std::int64_t replica = std::int64_t{tensor_} * pipeline_;
    if (data_ > 0 ? replica * data_ == ranks : ranks % replica == 0) return std::nullopt;
    const std::string asked = data_ > 0 ? "--dp " + std::to_string(data_) + " x " : "";
    const std::string needed =
        data_ > 0 ? std::to_string(replica * data_) + " ranks" : "a multiple of " + std::to_string(replica) + " ranks";
    return asked + "--tp " + std::to_string(tensor_) + " x --pp " + std::to_string(pipeline_) + " needs " + needed +
           ", found " + std::to_string(ranks);
  }

  Result run(MPI_Comm communicator) const override {
    switch (dimensions_.element_bytes) {
      case 2:
        return measure<std::uint16_t>(communicator);
      case 4:
        return measure<std::uint32_t>(communicator);
      default:
        return measure<std::uint64_t>(communicator);
    }
  }

 private:
  /// Throws UsageError where numbers do not go together.
  void check() const {
    const auto number = [this](std::int64_t Dimensions::* where) { return std::to_string(dimensions_.*where); };
    if (dimensions_.element_bytes != 2 && dimensions_.element_bytes != 4 && dimensions_.element_bytes != 8) {
      throw UsageError{"--element-bytes needs 2, 4 or 8, found " + number(&Dimensions::element_bytes)};
    }
    if (pipeline_ > dimensions_.layers) {
      throw UsageError{"--pp " + std::to_string(pipeline_) + " needs a layer for each stage, found --layers " +
                       number(&Dimensions::layers)};
    }
    const bool needs_activations = tensor_ > 1 || pipeline_ > 1 || dimensions_.experts > 0;
    if (dimensions_.hidden == 0 && needs_activations) {
      throw UsageError{
          "--tp, --pp and --experts need the width of activations: give --hidden, or take data parallelism"};
    }
    if (dimensions_.experts > 0 && dimensions_.experts_per_token > dimensions_.experts) {
      throw UsageError{"--experts-per-token " + number(&Dimensions::experts_per_token) +
                       " needs as many --experts, found " + number(&Dimensions::experts)};
    }
    const training::Sizes sizes = training::sizes_of(dimensions_, Grid{1, tensor_, pipeline_});
    if (std::max({sizes.bucket, sizes.activations, sizes.tokens}) > std::numeric_limits<int>::max()) {
      throw UsageError{"messages of more than " + std::to_string(std::numeric_limits<int>::max()) +
                       " elements: take a smaller --micro-batch or --bucket-bytes, or a larger --scale"};
    }
  }

  Grid grid_of(int ranks) const {
    return {.data = ranks / (tensor_ * pipeline_), .tensor = tensor_, .pipeline = pipeline_};
  }

  template <class Element>
  Result measure(MPI_Comm communicator) const {
    int ranks = 1;
    int rank = 0;
    MPI_Comm_size(communicator, &ranks);
    MPI_Comm_rank(communicator, &rank);
    const Grid grid = grid_of(ranks);
    training::Exchange<Element> exchange(communicator, dimensions_, grid, rank);
    const training::Step& step = exchange.step();
    const std::vector<training::Instruction> without_traffic = step.without_traffic();
    const std::vector<training::Instruction> without_computing = step.without_computing();

    exchange.template walk<training::Everywhere>(step.instructions, true);
    const bool differs = exchange.differs();
    std::uint64_t hash = exchange.fingerprint();
    MPI_Allreduce(MPI_IN_PLACE, &hash, 1, MPI_UINT64_T, MPI_SUM, communicator);

    TimedSection timed(communicator);
    for (int i = 0; i < steps_; ++i) exchange.template walk<training::AtThreePlaces>(step.instructions, true);
    const double seconds = timed.end();
    const training::Bytes counted = counted_bytes(communicator);
    const Times times{.whole = seconds / steps_,
                      .computing = step_seconds(communicator, exchange, without_traffic, false),
                      .communication = step_seconds(communicator, exchange, without_computing, true)};

    const double load = across(ns_to_seconds(step.computing_ns()), MPI_MAX, communicator);
    const auto total = [communicator](double own) { return across(own, MPI_SUM, communicator); };
    const training::Wrong& wrong = exchange.wrong();
    const training::Bytes bytes = training::expected_bytes(dimensions_, grid);
    Result result{.seconds = seconds,
                  .operations = bytes.all() * steps_,
                  .operation_unit = "bytes handed to MPI",
                  .size = std::to_string(grid.data) + " data x " + std::to_string(grid.tensor) + " tensor x " +
                          std::to_string(grid.pipeline) + " pipeline",
                  .iterations = steps_,
                  .checks = {{"wrong gradients", total(wrong.gradients), 0},
                             {"wrong activations", total(wrong.activations), 0},
                             {"wrong tokens", total(wrong.tokens), 0},
                             {"wrong messages of stages", total(wrong.stages), 0},
                             {"replicas that differ", total(differs ? 1 : 0), 0},
                             {"bytes of gradients", counted.gradients, bytes.gradients * steps_},
                             {"bytes of tensor groups", counted.tensor, bytes.tensor * steps_},
                             {"bytes between stages", counted.pipeline, bytes.pipeline * steps_},
                             {"bytes of experts", counted.experts, bytes.experts * steps_},
                             {"seconds of load left out", std::max(load - times.computing, 0.0),
                              load * least_load_share + 1e-9, 0, true}},
                  .fingerprint = hash};
    result.values = values(times, bytes, grid);
    result.facts = facts(grid, exchange.step());
    return result;
  }

  /// Seconds of a step on the slowest rank, over as many as are timed whole.
  template <class Element>
  double step_seconds(MPI_Comm communicator, training::Exchange<Element>& exchange,
                      const std::vector<training::Instruction>& instructions, bool has_traffic) const {
    MPI_Barrier(communicator);
    const std::uint64_t begin_ns = Clock::now();
    for (int i = 0; i < steps_; ++i) exchange.template walk<training::AtThreePlaces>(instructions, has_traffic);
    const double own = ns_to_seconds(Clock::now() - begin_ns);
    return across(own, MPI_MAX, communicator) / steps_;
  }

  std::vector<std::pair<std::string, double>> values(const Times& times, const training::Bytes& bytes,
                                                     const Grid& grid) const {
    const double exposed = std::clamp(times.whole - times.computing, 0.0, times.whole);
    std::vector<std::pair<std::string, double>> all{
        {"steps_per_second", 1 / times.whole},  {"step_seconds", times.whole},
        {"computing_seconds", times.computing}, {"communication_seconds", times.communication},
        {"exposed_seconds", exposed},           {"exposed_of_step", exposed / times.whole},
        {"gradient_bytes", bytes.gradients},    {"tensor_bytes", bytes.tensor},
        {"pipeline_bytes", bytes.pipeline},     {"expert_bytes", bytes.experts}};
    if (bytes.all() > 0) {
      all.emplace_back("overlapped_of_communication", std::clamp(1 - exposed / times.communication, 0.0, 1.0));
    }
    // A scaled step is none of the model's: so many samples would be said of a network that is as much faster.
    if (dimensions_.scale == 1) {
      const auto samples = static_cast<double>(dimensions_.micro_batch * dimensions_.micro_batches * grid.data);
      all.emplace_back("samples_per_second", samples / times.whole);
    }
    return all;
  }

  std::vector<std::pair<std::string, std::string>> facts(const Grid& grid, const training::Step& step) const {
    const std::string divisor = std::to_string(dimensions_.scale);
    return {{"model", std::string(model_)},
            {"scaled", dimensions_.scale == 1 ? "nothing"
                                              : "messages, buckets and computing are 1/" + divisor +
                                                    " of the model's, and as many as the model's"},
            {"load", "waited for as for an accelerator's: it takes no processor"},
            {"buckets", std::to_string(step.buckets.size()) + " on the first stage"},
            {"experts", dimensions_.experts == 0
                            ? "none"
                            : std::to_string(dimensions_.experts) + " shared by " +
                                  std::to_string(training::expert_group(dimensions_, grid)) + " ranks"}};
  }

  std::string_view model_;
  int data_;  // 0: what the ranks leave
  int tensor_;
  int pipeline_;
  int steps_;
  Dimensions dimensions_;
};

}  // namespace

int main(int argc, char** argv) {
  Program program{.name = "fabricbench-training-step",
                  .purpose =
                      "Takes steps of distributed training: the messages of data, tensor, pipeline and expert "
                      "parallelism beside a\n"
                      "computing load, verifies what was sent, and tells how fast it was and how much of its "
                      "communication was hidden.",
                  .kernels = {{"training-step",
                               "allreduces behind and between computing, messages of stages, all-to-alls of experts",
                               read_problem<TrainingStep>}},
                  .options = {{"--model", "NAME", "what the record calls the model"},
                              {"--dp", "N", "replicas; default what the ranks leave"},
                              {"--tp", "N", "ranks that share a layer; default 1"},
                              {"--pp", "N", "stages that share the layers; default 1"},
                              {"--steps", "N", "steps that are timed; default 5"}},
                  .example = "--tp 2 --layers 8 --steps 10"};
  for (const Number& each : numbers) program.options.push_back({each.option, "N", each.meaning});
  return run_program(program, argc, argv);
}
