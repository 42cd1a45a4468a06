#include "probe/launch.hpp"

#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "core/control.hpp"
#include "core/plan.hpp"
#include "core/record_writer.hpp"
#include "core/whereabouts.hpp"
#include "probe/cell_runner.hpp"

namespace fabricbench {
namespace {

using nlohmann::json;

// Orders go from rank 0 to the others: the position of a probe in the plan, or that there is no more.
constexpr int order_tag = 0;
constexpr int report_tag = 32001;
constexpr int no_more = -1;

struct Order {
  int probe = no_more;
  Exit exit = Exit::done;
};

json rank_info(const Surroundings& surroundings) {
  json info = whereabouts(surroundings.control.rank());
  if (surroundings.interface) {
    info["interface"] = surroundings.interface->name;
    if (surroundings.interface->address) info["address"] = address_text(*surroundings.interface->address);
    info["mac"] = mac_text(surroundings.interface->mac);
    info["mtu"] = surroundings.interface->mtu;
  }
  return info;
}

std::string read_plan_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw PlanError(path, std::string("cannot be read (") + std::strerror(errno) + ")");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What rank 0 finds before the first cell, told to all: the plan, or why there is none.
struct Beginning {
  Exit exit = Exit::done;
  std::string plan_text;
  std::unique_ptr<RecordWriter> writer;
};

Beginning begin(const std::string& plan_path, int world_size) {
  Beginning beginning;
  try {
    beginning.plan_text = read_plan_text(plan_path);
    const Plan plan = parse_plan(beginning.plan_text);
    check_ranks(plan, world_size);
    beginning.writer = std::make_unique<RecordWriter>(plan.output);
  } catch (const PlanError& error) {
    std::fprintf(stderr, "fabricbench-probe: the plan cannot be followed: %s\n", error.what());
    beginning.exit = Exit::bad_plan;
  } catch (const OutputError& error) {
    std::fprintf(stderr, "fabricbench-probe: %s\n", error.what());
    beginning.exit = Exit::environment;
  }
  return beginning;
}

void send_order(const Control& control, int to, Order order) {
  control.send(to, order_tag, {reinterpret_cast<const char*>(&order), sizeof order});
}

void direct_cell(const Surroundings& surroundings, CellRunner& runner, int ordinal, RecordWriter& writer) {
  const Control& control = surroundings.control;
  const PlanProbe& probe = surroundings.plan.probes[static_cast<std::size_t>(ordinal)];
  const std::vector<int> members = members_of(probe);
  for (const int member : members) {
    if (member != 0) send_order(control, member, {.probe = ordinal});
  }
  std::optional<CellReport> own;
  if (std::ranges::find(members, 0) != members.end()) own = runner.run(probe, ordinal);
  std::vector<CellReport> reports;
  for (const int member : members) {
    reports.push_back(member == 0 ? *own : unpack_report(control.receive(member, report_tag)));
  }
  writer.write_cell(probe, merge(reports));
}

Exit direct(const Surroundings& surroundings, const std::vector<json>& ranks, RecordWriter& writer) {
  CellRunner runner(surroundings);
  Exit exit = Exit::done;
  try {
    writer.write_header(surroundings.plan, ranks, surroundings.clock, mpi_library());
    for (int i = 0; i < static_cast<int>(surroundings.plan.probes.size()); ++i) {
      direct_cell(surroundings, runner, i, writer);
    }
    writer.write_footer();
  } catch (const OutputError& error) {
    std::fprintf(stderr, "fabricbench-probe: %s\n", error.what());
    exit = Exit::environment;
  }
  for (int other = 1; other < surroundings.control.size(); ++other) {
    send_order(surroundings.control, other, {.exit = exit});
  }
  return exit;
}

Exit obey(const Surroundings& surroundings) {
  CellRunner runner(surroundings);
  for (;;) {
    Order order;
    const std::string message = surroundings.control.receive(0, order_tag);
    std::memcpy(&order, message.data(), sizeof order);
    if (order.probe == no_more) return order.exit;
    const PlanProbe& probe = surroundings.plan.probes[static_cast<std::size_t>(order.probe)];
    surroundings.control.send(0, report_tag, pack(runner.run(probe, order.probe)));
  }
}

Exit follow_plan(const Control& control, const Plan& plan, RecordWriter* writer) {
  MPI_Comm data = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &data);
  const Surroundings surroundings{.control = control,
                                  .plan = plan,
                                  .clock = measure_clock(),
                                  .interface = find_interface(plan.fabric.interface, plan.fabric.subnet),
                                  .host = host_name(),
                                  .data_communicator = data};
  std::vector<json> ranks;
  for (const std::string& text : control.gather(rank_info(surroundings).dump())) ranks.push_back(json::parse(text));
  const Exit exit = control.rank() == 0 ? direct(surroundings, ranks, *writer) : obey(surroundings);
  MPI_Comm_free(&data);
  return exit;
}

}  // namespace

Exit launch(const std::string& plan_path) {
  // Short sleeps of the control plane are to be short: the default slack would add 50 us to each.
  prctl(PR_SET_TIMERSLACK, 1000);
  const Control control;
  Beginning beginning;
  if (control.rank() == 0) beginning = begin(plan_path, control.size());
  const std::string told = control.broadcast(json{{"exit", beginning.exit}, {"plan", beginning.plan_text}}.dump());
  const json value = json::parse(told);
  const Exit exit = value["exit"].get<Exit>();
  if (exit != Exit::done) return exit;
  const Plan plan = parse_plan(value["plan"].get<std::string>());
  return follow_plan(control, plan, beginning.writer.get());
}

}  // namespace fabricbench
