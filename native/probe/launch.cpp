#include "probe/launch.hpp"

#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "core/channel.hpp"
#include "core/clock_sync.hpp"
#include "core/plan.hpp"
#include "core/record_writer.hpp"
#include "core/whereabouts.hpp"
#include "probe/orders.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

// Rank 0 has to read the plan, from a file system that may not answer.
constexpr double seconds_to_read_plan = 60;

RankInfo rank_info(const Surroundings& surroundings, std::uint64_t start_up_ns) {
  json info = whereabouts(surroundings.control.rank(), surroundings.interface);
  info["start_up_ns"] = start_up_ns;
  return {std::move(info)};
}

std::string read_plan_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw InputError(path, std::string("cannot be read (") + std::strerror(errno) + ")");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What rank 0 finds before the first cell, for all to hear; opens the record where there is a plan.
Beginning begin(const std::string& plan_path, int world_size, std::unique_ptr<RecordWriter>& writer) {
  Beginning beginning;
  try {
    beginning.plan_text = read_plan_text(plan_path);
    const Plan plan = parse_plan(beginning.plan_text);
    check_ranks(plan, world_size);
    // Beside the plan, for the working directory is one that all nodes have; - is stdout.
    const std::filesystem::path output = plan.output;
    const bool is_stdout = output == "-";
    writer = std::make_unique<RecordWriter>(
        is_stdout ? plan.output : (std::filesystem::path(plan_path).parent_path() / output).string());
  } catch (const InputError& error) {
    std::fprintf(stderr, "fabricbench-probe: the plan cannot be followed: %s\n", error.what());
    beginning.exit_code = static_cast<int>(ExitCode::bad_input);
  } catch (const OutputError& error) {
    std::fprintf(stderr, "fabricbench-probe: %s\n", error.what());
    beginning.exit_code = static_cast<int>(ExitCode::environment);
  }
  return beginning;
}

bool needs_clocks(const Plan& plan) { return std::ranges::any_of(plan.probes, needs_global_clock); }

void follow_plan(Control& control, const Plan& plan, RecordWriter* writer, std::uint64_t start_up_ns) {
  control.set_patience(plan.patience_seconds);
  MPI_Comm data = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &data);
  GlobalClock global_clock = needs_clocks(plan) ? GlobalClock(control, data, clock_identity()) : GlobalClock();
  const Surroundings surroundings{.control = control,
                                  .plan = plan,
                                  .clock = measure_clock(),
                                  .interface = find_interface(plan.fabric.interface, plan.fabric.subnet),
                                  .host = host_name(),
                                  .data_communicator = data,
                                  .global_clock = global_clock};
  const Channel channel(control);
  std::vector<json> ranks;
  for (RankInfo& rank : channel.gather(rank_info(surroundings, start_up_ns))) ranks.push_back(std::move(rank.info));
  std::vector<ClockModel> clocks;
  if (needs_clocks(plan)) clocks = channel.gather(global_clock.model());
  control.rank() == 0 ? direct(surroundings, ranks, clocks, *writer) : obey(surroundings);
  MPI_Comm_free(&data);
}

ExitCode read_and_follow_plan(Control& control, const std::string& plan_path, std::uint64_t start_up_ns) {
  std::unique_ptr<RecordWriter> writer;
  Beginning beginning;
  if (control.rank() == 0) beginning = begin(plan_path, control.size(), writer);
  beginning = Channel(control).broadcast(beginning);
  const auto exit = static_cast<ExitCode>(beginning.exit_code);
  if (exit != ExitCode::done) return exit;
  const Plan plan = parse_plan(beginning.plan_text);
  follow_plan(control, plan, writer.get(), start_up_ns);
  return ExitCode::done;
}

/// Say why the launch ends here, and end it on every rank.
ExitCode end_launch(Control& control, ExitCode exit, const std::string& cause) {
  std::fprintf(stderr, "fabricbench-probe: %s\n", cause.c_str());
  control.end_all(static_cast<int>(exit), cause);
  return exit;
}

}  // namespace

ExitCode launch(const std::string& plan_path, std::uint64_t start_up_ns) {
  // Short sleeps of the control plane are to be short: the default slack would add 50 us to each.
  prctl(PR_SET_TIMERSLACK, 1000);
  Control control;
  control.set_patience(seconds_to_read_plan);
  try {
    return read_and_follow_plan(control, plan_path, start_up_ns);
  } catch (const LaunchEnded& ended) {
    control.confirm(ended);
    return static_cast<ExitCode>(ended.exit_code());
  } catch (const OutputError& error) {
    return end_launch(control, ExitCode::environment, error.what());
  } catch (const std::exception& error) {
    const std::string who = "rank " + std::to_string(control.rank()) + " on " + host_name();
    return end_launch(control, ExitCode::failed, who + " cannot go on: " + error.what());
  }
}

}  // namespace fabricbench
