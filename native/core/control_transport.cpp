#include "core/control_transport.hpp"

#include <cstdlib>

#include "base/clock.hpp"
#include "core/control.hpp"
#include "core/message.hpp"

namespace fabricbench {
namespace {

class MpiControlTransport final : public ControlTransport {
 public:
  // The communicator goes with MPI: a question whether a rank waits, or the end of the launch, may still be on its way
  // when all else is done, and MPICH ends a program that frees a communicator with such a message.
  MpiControlTransport() {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_ARE_FATAL);  // nothing can be told without it
    MPI_Comm_rank(communicator_, &rank_);
    MPI_Comm_size(communicator_, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  MPI_Request post(int to, int tag, const std::string& bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_CHAR, to, tag, communicator_, &request);
    return request;
  }

  std::optional<int> probe(int from, int tag) override {
    MPI_Status status;
    int has_come = 0;
    MPI_Iprobe(from, tag, communicator_, &has_come, &status);
    if (has_come == 0) return std::nullopt;
    return status.MPI_SOURCE;
  }

  std::optional<Arrival> take(int from, int tag) override {
    int has_come = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Improbe(from, tag, communicator_, &has_come, &handle, &status);
    if (has_come == 0) return std::nullopt;
    int size = 0;
    MPI_Get_count(&status, MPI_CHAR, &size);
    Arrival arrival{.from = status.MPI_SOURCE,
                    .bytes = std::make_shared<std::string>(static_cast<std::size_t>(size), '\0')};
    MPI_Imrecv(arrival.bytes->data(), size, MPI_CHAR, &handle, &arrival.request);
    return arrival;
  }

  bool is_complete(MPI_Request& request) override {
    int is_done = 0;
    if (const int error = MPI_Test(&request, &is_done, MPI_STATUS_IGNORE); error != MPI_SUCCESS) {
      throw ControlError("rank " + std::to_string(rank_) + ": MPI_Test failed with error " + std::to_string(error));
    }
    return is_done != 0;
  }

  std::uint64_t now_ns() const override { return Clock::now(); }
  void wait(Pause& pause, std::optional<std::uint64_t> /*alarm_ns*/) override { pause.sleep(); }

  [[noreturn]] void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::abort();  // it does not return
  }

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::unique_ptr<ControlTransport> mpi_control_transport() { return std::make_unique<MpiControlTransport>(); }

}  // namespace fabricbench
