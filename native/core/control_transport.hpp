// What the control plane asks of whatever carries its bytes: over MPI in the measurer, within one process in the
// simulation of launches (native/tests/simulation). It knows ranks and tags and nothing of what is said. None of it is
// called between two time stamps, so that its calls may be virtual.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace fabricbench {

class Pause;

/// A message that is being taken.
struct Arrival {
  int from = 0;
  std::shared_ptr<std::string> bytes;  // whole once the request is complete
  MPI_Request request = MPI_REQUEST_NULL;
};

/// Between the ranks of a launch; used by one thread. Messages of one rank to another with one tag come in order.
class ControlTransport {
 public:
  ControlTransport() = default;
  virtual ~ControlTransport() = default;
  ControlTransport(const ControlTransport&) = delete;
  ControlTransport& operator=(const ControlTransport&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Begin to send. The bytes stay until the request is complete; MPI_REQUEST_NULL where that is so already.
  virtual MPI_Request post(int to, int tag, const std::string& bytes) = 0;
  /// Of whom a message has come that nobody has taken yet; `from` may be MPI_ANY_SOURCE.
  virtual std::optional<int> probe(int from, int tag) = 0;
  /// Begin to take the next message if one has come.
  virtual std::optional<Arrival> take(int from, int tag) = 0;
  /// Throws ControlError where MPI reports an error: of a request of another communicator that returns errors, never of
  /// the control plane's own.
  virtual bool is_complete(MPI_Request& request) = 0;

  /// The time that patience is measured by.
  virtual std::uint64_t now_ns() const = 0;
  /// Sleep until it is time for the next look. `alarm_ns`: when the caller has something to do though nothing comes;
  /// until then a transport that knows that nothing has may let it sleep on.
  virtual void wait(Pause& pause, std::optional<std::uint64_t> alarm_ns) = 0;
  /// End the processes of all ranks.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

/// MPI, over a communicator of its own. Collective to make.
std::unique_ptr<ControlTransport> mpi_control_transport();

}  // namespace fabricbench
