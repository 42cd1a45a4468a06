// fabricbench-probe PLAN.json: measures what a plan asks for, over MPI's ranks, and writes the record.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/clock.hpp"
#include "base/program.hpp"
#include "base/vocabulary.hpp"
#include "core/pattern_facts.hpp"
#include "core/rank_info.hpp"
#include "core/set_aside.hpp"
#include "probe/doors.hpp"
#include "probe/launch.hpp"

namespace {

constexpr std::string_view usage =
    "Usage: mpiexec -n RANKS fabricbench-probe [--preload LIBRARY] [--threads] PLAN.json\n"
    "\n"
    "Measures the probes of a plan and writes the record to the plan's output, one JSON object a line.\n"
    "The plan and the record are described by schema/plan.json and schema/record.json.\n"
    "\n"
    "  --preload LIBRARY\n"
    "             begin anew with the library loaded before all others, and before those that LD_PRELOAD names: cells\n"
    "             of MPI whose stages are measured need libfabricbench-socket-calls.so\n"
    "  --threads  ask MPI to let several threads call it, which the pattern threaded needs; other calls cost more "
    "then\n"
    "             (some 30 ns each in MPICH's shared memory)\n"
    "  --list     the layers that a plan may name, a line for each door: its layer, its name and how receivers can\n"
    "             wait, and a line for each pattern: its name, family and metric\n"
    "  --mpi      the MPI library that it runs with here, as that names itself\n"
    "  --version  the version\n"
    "  --help     this text\n"
    "\n"
    "Exit codes: 0 measured (cells that failed say so in the record), 1 a rank hung or could not go on,\n"
    "2 the plan cannot be followed, 3 the environment lacks something, the output cannot be written for example.\n";

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

template <class Enum>
void print_words(std::string_view title) {
  print(title);
  for (const std::string_view word : fabricbench::names_of<Enum>) {
    print(" ");
    print(word);
  }
  print("\n");
}

/// A line for each door: its layer, its name, the ways in which its receivers can wait.
void print_doors() {
  for (const fabricbench::Door& door : fabricbench::all_doors()) {
    print("door ");
    print(name_of(door.layer));
    print(" ");
    print(door.name);
    for (const fabricbench::Receive receive : door.receives) {
      print(" ");
      print(name_of(receive));
    }
    print("\n");
  }
}

/// A line for each pattern, as src/fabricbench/patterns.py has them: its name, its family, its metric.
void print_patterns() {
  for (std::size_t i = 0; i < fabricbench::names_of<fabricbench::Pattern>.size(); ++i) {
    const auto pattern = static_cast<fabricbench::Pattern>(i);
    const fabricbench::PatternFacts facts = fabricbench::facts_of(pattern);
    print("pattern");
    for (const std::string_view word : {name_of(pattern), name_of(facts.family), name_of(facts.metric)}) {
      print(" ");
      print(word);
    }
    print("\n");
  }
}

fabricbench::ExitCode measure(int argc, char** argv, bool has_threads) {
  const std::string plan_path = argv[argc - 1];
  int provided = MPI_THREAD_SINGLE;
  const int wanted = has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  const std::uint64_t begin_ns = fabricbench::Clock::now();
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  const fabricbench::ExitCode exit = fabricbench::launch(plan_path, fabricbench::Clock::now() - begin_ns);
  // What a failed cell left behind is never received: MPI_Finalize would wait for it.
  if (fabricbench::has_set_aside()) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(exit));
  MPI_Finalize();
  return exit;
}

/// Begin anew with the library preloaded, whoever started this process and whatever is preloaded besides. Returns where
/// it was done before, or cannot be: the loader has said so, and what needs the library says that it lacks it.
void begin_with(const std::string& library, char** argv) {
  constexpr const char* variable = "LD_PRELOAD";
  const char* const others = std::getenv(variable);
  const std::string_view there = others == nullptr ? "" : others;
  if (there.starts_with(library)) return;
  setenv(variable, (library + (there.empty() ? "" : ":") + std::string(there)).c_str(), 1);
  std::error_code error;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(own.c_str(), argv);
}

int refuse(const char* problem) {
  std::fprintf(stderr, "fabricbench-probe: %s; see fabricbench-probe --help\n", problem);
  return static_cast<int>(fabricbench::ExitCode::bad_input);
}

}  // namespace

int main(int argc, char** argv) {
  int place = 1;
  std::string library;
  bool has_threads = false;
  for (; place + 1 < argc; ++place) {
    const std::string_view option = argv[place];
    if (option == "--threads") {
      has_threads = true;
    } else if (option == "--preload" && place + 2 < argc) {
      library = argv[++place];
    } else {
      break;
    }
  }
  if (place + 1 != argc) return refuse("one plan is needed");
  const std::string_view argument = argv[place];
  if (argument == "--help" || argument == "-h") {
    print(usage);
  } else if (argument == "--version") {
    print("fabricbench-probe ");
    print(fabricbench::version);
    print("\n");
  } else if (argument == "--mpi") {
    print(fabricbench::mpi_library());  // which may be asked before MPI_Init
    print("\n");
  } else if (argument == "--list") {
    print_words<fabricbench::Layer>("layers:");
    print_doors();
    print_patterns();
  } else if (argument.starts_with("--")) {
    return refuse("unknown option");
  } else {
    if (!library.empty()) begin_with(library, argv);
    return static_cast<int>(measure(argc, argv, has_threads));
  }
  return 0;
}
