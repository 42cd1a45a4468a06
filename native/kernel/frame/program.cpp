// fabricbench-npb KERNEL: runs a kernel on MPI's ranks, verifies it, tells how fast it was and where the time went.
//
//   options   the command line            outcome  verified or not, the exit code
//   profile   time in MPI, by call        report   what people read        record  what programs read
#include <mpi.h>
#include <sys/prctl.h>
#include <time.h>

#include <cstdio>
#include <memory>
#include <new>
#include <string>

#include "core/control.hpp"
#include "core/failure.hpp"
#include "core/version.hpp"
#include "core/whereabouts.hpp"
#include "kernel/frame/options.hpp"
#include "kernel/frame/outcome.hpp"
#include "kernel/npb/kernels.hpp"
#include "kernel/npb/record.hpp"
#include "kernel/npb/report.hpp"

namespace {

using namespace fabricbench;
using namespace fabricbench::npb;

void complain(const Control& control, const std::string& problem) {
  if (control.rank() == 0) std::fprintf(stderr, "fabricbench-npb: %s\n", problem.c_str());
}

/// What rank 0 has beside the kernel: where results go. The other ranks have neither.
struct Outlet {
  std::FILE* text = nullptr;
  std::unique_ptr<Record> record;
};

/// Why the command line cannot be followed with the ranks that there are; empty if it can.
std::string problem_with(const Options& options, int available) {
  const int ranks = options.ranks.value_or(available);
  if (ranks > available) {
    return "--ranks " + std::to_string(ranks) + " needs as many ranks, found " + std::to_string(available) +
           ": start it with mpiexec -n " + std::to_string(ranks);
  }
  return options.kernel->refusal(options.problem, ranks).value_or("");
}

Exit open_outlet(const Control& control, const Options& options, const std::vector<nlohmann::json>& ranks,
                 Outlet& outlet) {
  if (control.rank() != 0) return Exit::verified;
  outlet.text = options.output == "-" ? stderr : stdout;
  if (options.output.empty()) return Exit::verified;
  try {
    outlet.record = std::make_unique<Record>(options.output);
    outlet.record->write_header(*options.kernel, options.problem, ranks, mpi_library());
  } catch (const OutputError& error) {
    complain(control, error.what());
    return Exit::environment;
  }
  return Exit::verified;
}

/// Run once and write what came of it; the exit code so far, the same on every rank. Each run has a communicator of its
/// own: MPICH takes another algorithm after a few collectives on a communicator, which adds in another order, and a
/// second run would differ from the first in its last bits.
Exit run_once(const Control& control, MPI_Comm ranks, const Options& options, Exit so_far, Outlet& outlet) {
  reset_counts();
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Comm_dup(ranks, &communicator);
  const Result result = options.kernel->run(communicator, options.problem);
  const Profile profile = gather_profile(communicator);
  auto exit = static_cast<int>(after(so_far, result));
  if (control.rank() == 0) {
    print_result(outlet.text, *options.kernel, options.problem, result, profile);
    try {
      if (outlet.record) outlet.record->write_run(result, profile);
    } catch (const OutputError& error) {
      complain(control, error.what());
      exit = static_cast<int>(Exit::environment);
    }
  }
  MPI_Bcast(&exit, 1, MPI_INT, 0, communicator);
  MPI_Comm_free(&communicator);
  return static_cast<Exit>(exit);
}

Exit run_all(const Control& control, MPI_Comm communicator, const Options& options, Outlet& outlet) {
  Exit exit = Exit::verified;
  for (int i = 0; i < options.repetitions && exit != Exit::environment; ++i) {
    exit = run_once(control, communicator, options, exit, outlet);
  }
  try {
    if (outlet.record && exit != Exit::environment) outlet.record->write_footer();
  } catch (const OutputError& error) {
    complain(control, error.what());
    exit = Exit::environment;
  }
  return exit;
}

/// End all ranks, because this one cannot go on and the others wait for it inside the kernel. Often all fail alike:
/// rank 0 speaks first, and has ended the others before they would. MPI's starter drops what it has not yet passed on
/// of our words when it hears of the abort, on another socket; hence the moment between the two.
[[noreturn]] void give_up(int rank, const std::string& problem) {
  const auto wait = [](timespec time) { nanosleep(&time, nullptr); };
  if (rank > 0) wait({2, 0});
  std::fprintf(stderr, "fabricbench-npb: rank %d on %s: %s\n", rank, host_name().c_str(), problem.c_str());
  wait({0, 300'000'000});
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::environment));
  std::_Exit(static_cast<int>(Exit::environment));  // MPI_Abort may return where it could not reach the starter
}

nlohmann::json own_whereabouts(const Control& control, const Options& options) {
  if (!options.interface && !options.subnet) return whereabouts(control.rank());
  return whereabouts(control.rank(), find_interface(options.interface, options.subnet));
}

Exit follow(const Control& control, const Options& options) {
  if (const std::string problem = problem_with(options, control.size()); !problem.empty()) {
    complain(control, problem);
    return Exit::usage;
  }
  const int ranks = options.ranks.value_or(control.size());
  const bool takes_part = control.rank() < ranks;
  std::vector<nlohmann::json> infos;
  for (const std::string& text : control.gather(own_whereabouts(control, options).dump())) {
    if (static_cast<int>(infos.size()) < ranks) infos.push_back(nlohmann::json::parse(text));
  }
  Outlet outlet;
  const std::string opened =
      control.broadcast(std::to_string(static_cast<int>(open_outlet(control, options, infos, outlet))));
  if (const auto exit = static_cast<Exit>(std::stoi(opened)); exit != Exit::verified) return exit;

  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, control.rank(), &communicator);
  Exit exit = Exit::verified;
  if (takes_part) {
    try {
      exit = run_all(control, communicator, options, outlet);
    } catch (const std::bad_alloc&) {
      give_up(control.rank(), "not enough memory for class " + std::string(1, static_cast<char>(options.problem)) +
                                  " of " + std::string(options.kernel->name) + ": take a smaller class, or more nodes");
    } catch (const std::exception& error) {
      give_up(control.rank(), error.what());
    }
    MPI_Comm_free(&communicator);
  }
  // Ranks that take no part wait here, asleep.
  return static_cast<Exit>(std::stoi(control.broadcast(std::to_string(static_cast<int>(exit)))));
}

Exit print_about(const Options& options) {
  switch (options.action) {
    case Action::list:
      std::fputs(list_text(kernels, options.problem).c_str(), stdout);
      break;
    case Action::version:
      std::printf("fabricbench-npb %.*s\n", static_cast<int>(version.size()), version.data());
      break;
    default:
      std::fputs(usage_text, stdout);
  }
  return Exit::verified;
}

/// What needs MPI: running, and saying once for all ranks what is wrong.
Exit with_mpi(int argc, char** argv, const std::optional<Options>& options, const std::string& problem) {
  prctl(PR_SET_TIMERSLACK, 1000);  // the control plane's short sleeps are to be short
  MPI_Init(&argc, &argv);
  Exit exit = Exit::usage;
  {
    const Control control;
    if (options) {
      exit = follow(control, *options);
    } else {
      complain(control, problem + "; see fabricbench-npb --help");
    }
  }
  MPI_Finalize();
  return exit;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<Options> options;
  std::string problem;
  try {
    options = parse_options({argv + 1, static_cast<std::size_t>(argc - 1)}, kernels);
  } catch (const UsageError& error) {
    problem = error.message;
  }
  if (options && options->action != Action::run) return static_cast<int>(print_about(*options));
  return static_cast<int>(with_mpi(argc, argv, options, problem));
}
