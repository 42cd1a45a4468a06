// fabricbench-farm PLAN.json: many independent jobs on the nodes of a launch, their inputs sent over MPI.
#include <mpi.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/interface.hpp"
#include "base/json_text.hpp"
#include "base/program.hpp"
#include "core/control.hpp"
#include "core/rank_info.hpp"
#include "core/set_aside.hpp"
#include "farm/giver.hpp"
#include "farm/plan.hpp"
#include "farm/record.hpp"
#include "farm/runner.hpp"
#include "farm/source.hpp"
#include "farm/worker.hpp"

namespace fabricbench::farm {
namespace {

using nlohmann::json;

constexpr std::string_view usage =
    "Usage: mpiexec -n RANKS fabricbench-farm [options] PLAN.json\n"
    "\n"
    "Runs independent jobs on every rank but the first, which sends each its input and writes down what became of it.\n"
    "The plan and the record are described by schema/farm_plan.json and schema/farm_record.json.\n"
    "\n"
    "  --output FILE   the record, one JSON object a line; default - for stdout\n"
    "  --interface I   the interface that leads into the fabric under test: the record then has its address\n"
    "  --subnet NET    the same, found by its network, 10.98.1.0/24 say\n"
    "  --version       the version\n"
    "  --help          this text\n"
    "\n"
    "Exit codes: 0 every job has ended, well or not, as the record says, 1 a rank hung or could not go on,\n"
    "2 the plan cannot be followed, 3 the environment lacks something: no node has a folder for inputs, say.\n"
    "\n"
    "Example: mpiexec -n 4 fabricbench-farm --output farm.jsonl farm.json\n";

/// Rank 0 has to read the plan, from a file system that may not answer.
constexpr double seconds_to_begin = 60;

struct Options {
  std::string plan;
  std::string output = "-";
  std::optional<std::string> interface;
  std::optional<Subnet> subnet;
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      if (!options.plan.empty()) throw InputError("one plan is needed, found " + options.plan + " and " + word);
      options.plan = word;
      continue;
    }
    if (word != "--output" && word != "--interface" && word != "--subnet")
      throw InputError("there is no option " + word);
    if (++i == argc) throw InputError(word + " needs a value");
    if (word == "--output") options.output = argv[i];
    if (word == "--interface") options.interface = argv[i];
    if (word == "--subnet" && !(options.subnet = parse_subnet(argv[i])))
      throw InputError("--subnet needs a network such as 10.98.1.0/24, found \"" + std::string(argv[i]) + "\"");
  }
  if (options.plan.empty()) throw InputError("a plan is needed");
  return options;
}

void complain(const std::string& what) { std::fprintf(stderr, "fabricbench-farm: %s\n", what.c_str()); }

/// What rank 0 has before the first job.
struct Beginning {
  ExitCode exit = ExitCode::done;
  std::string plan_text;
  std::optional<FarmPlan> plan;
  std::unique_ptr<Source> source;
  std::unique_ptr<FarmRecord> record;
};

void begin(const Options& options, int ranks, Beginning& beginning) {
  try {
    std::ifstream file(options.plan);
    if (!file) throw InputError(options.plan, std::string("cannot be read (") + std::strerror(errno) + ")");
    beginning.plan_text.assign(std::istreambuf_iterator<char>(file), {});
    beginning.plan = parse_farm_plan(beginning.plan_text);
    if (ranks < 2)
      throw InputError("a farm needs 2 ranks or more, found 1: rank 0 gives out jobs, the others run them" +
                       std::string(why_alone));
    beginning.source = std::make_unique<Source>(*beginning.plan);
    beginning.record = std::make_unique<FarmRecord>(options.output, *beginning.plan);
  } catch (const InputError& error) {
    complain(std::string("the farm cannot be begun: ") + error.what());
    beginning.exit = ExitCode::bad_input;
  } catch (const OutputError& error) {
    complain(error.what());
    beginning.exit = ExitCode::environment;
  }
}

/// What a rank tells of itself before the first job.
struct Place {
  json info;
  std::string folder;   // of a worker
  std::string problem;  // why it has none
};

Place own_place(const Control& control, const Options& options, const FarmPlan& plan, Runner* runner) {
  Place place{.info = rank_info(control.rank(), find_interface(options.interface, options.subnet)),
              .folder = {},
              .problem = {}};
  if (runner == nullptr) return place;
  try {
    place.folder = runner->open(plan.scratch);
  } catch (const Failure& failure) {
    place.problem = failure.what();
  }
  return place;
}

/// Rank 0 alone.
class Direction {
 public:
  Direction(Control& control, MPI_Comm pieces, const Beginning& beginning)
      : control_(control), pieces_(pieces), beginning_(beginning) {}

  ExitCode direct(const std::vector<std::string>& places) {
    std::vector<json> infos;
    std::vector<WorkerPlace> workers;
    std::vector<int> numbers;
    std::map<std::string, std::string> left_out;
    for (const std::string& text : places) {
      json told = parse_json(text);
      const int rank = static_cast<int>(infos.size());
      const std::string host = told["info"]["host"];
      const std::string problem = told["problem"];
      infos.push_back(std::move(told["info"]));
      if (rank == 0) continue;
      if (problem.empty()) {
        workers.push_back({.rank = rank, .host = host});
        numbers.push_back(rank);
      } else {
        left_out.emplace(host, problem);
        complain("rank " + std::to_string(rank) + " on " + host + " runs no jobs: " + problem);
      }
    }
    const ExitCode exit = workers.empty() ? ExitCode::environment : ExitCode::done;
    control_.broadcast(std::to_string(static_cast<int>(exit)));
    if (workers.empty()) {
      complain("no node can run a job: see above");
      return exit;
    }
    beginning_.record->write_header(infos, numbers, mpi_library());
    Giver giver(control_, pieces_, *beginning_.plan, *beginning_.source, *beginning_.record, workers);
    FarmTotals totals = giver.run();
    giver.close(totals);
    totals.left_out.merge(left_out);
    beginning_.record->write_footer(totals);
    giver.wait_for_the_last();
    return exit;
  }

 private:
  Control& control_;
  MPI_Comm pieces_;
  const Beginning& beginning_;
};

/// Rank 0's text on all ranks, of each of which no other hears by way of one that hangs.
std::string end_of_all(const Control& control, std::string text) {
  if (control.rank() > 0) return control.receive_patiently(0, launch_tag);
  for (int other = 1; other < control.size(); ++other) control.send(other, launch_tag, text);
  return text;
}

ExitCode farm(Control& control, const Options& options, std::unique_ptr<Runner> runner) {
  Beginning beginning;
  if (control.rank() == 0) begin(options, control.size(), beginning);
  const json told = parse_json(
      control.broadcast(json_text(json{{"exit", static_cast<int>(beginning.exit)}, {"plan", beginning.plan_text}})));
  if (const ExitCode exit{told["exit"].get<int>()}; exit != ExitCode::done) return exit;
  const FarmPlan plan = parse_farm_plan(told["plan"].get<std::string>());
  const Place place = own_place(control, options, plan, runner.get());
  const std::vector<std::string> places =
      control.gather(json_text(json{{"info", place.info}, {"problem", place.problem}}));
  control.set_patience(plan.patience_seconds);
  MPI_Comm pieces = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &pieces);
  ExitCode exit = ExitCode::done;
  if (control.rank() == 0) {
    exit = Direction(control, pieces, beginning).direct(places);
  } else {
    exit = static_cast<ExitCode>(std::stoi(control.broadcast({})));
    if (exit == ExitCode::done && place.problem.empty()) Worker(control, pieces, plan, *runner, place.folder).run();
  }
  // Who runs no jobs waits here, asleep.
  const ExitCode all = static_cast<ExitCode>(std::stoi(end_of_all(control, std::to_string(static_cast<int>(exit)))));
  MPI_Comm_free(&pieces);
  return all;
}

ExitCode end_launch(Control& control, ExitCode exit, const std::string& cause) {
  complain(cause);
  control.end_all(static_cast<int>(exit), cause);
  return exit;
}

ExitCode launch(const Options& options, std::unique_ptr<Runner> runner) {
  Control control;
  control.set_patience(seconds_to_begin);
  if (control.rank() == 0) runner.reset();
  try {
    return farm(control, options, std::move(runner));
  } catch (const LaunchEnded& ended) {
    control.confirm(ended);
    return static_cast<ExitCode>(ended.exit_code());
  } catch (const OutputError& error) {
    return end_launch(control, ExitCode::environment, error.what());
  } catch (const std::exception& error) {
    return end_launch(
        control, ExitCode::failed,
        "rank " + std::to_string(control.rank()) + " on " + host_name() + " cannot go on: " + error.what());
  }
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  prctl(PR_SET_TIMERSLACK, 1000);  // short sleeps are to be short
  auto runner = std::make_unique<Runner>();
  MPI_Init(&argc, &argv);
  const ExitCode exit = launch(options, std::move(runner));
  if (has_set_aside()) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(exit));
  MPI_Finalize();
  return static_cast<int>(exit);
}

}  // namespace
}  // namespace fabricbench::farm

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") {
    std::fwrite(fabricbench::farm::usage.data(), 1, fabricbench::farm::usage.size(), stdout);
    return 0;
  }
  if (first == "--version") {
    std::printf("fabricbench-farm %s\n", std::string(fabricbench::version).c_str());
    return 0;
  }
  try {
    return fabricbench::farm::run(argc, argv);
  } catch (const fabricbench::InputError& error) {
    std::fprintf(stderr, "fabricbench-farm: %s; see fabricbench-farm --help\n", error.what());
    return static_cast<int>(fabricbench::ExitCode::bad_input);
  } catch (const fabricbench::Failure& error) {
    std::fprintf(stderr, "fabricbench-farm: %s\n", error.what());
    return static_cast<int>(fabricbench::ExitCode::environment);
  }
}
