// Layer mpi: messages of the MPI library that the measurer was built with.
#pragma once

#include <array>
#include <string_view>

#include "transport/device.hpp"
#include "transport/mpi_path.hpp"
#include "transport/staged_mpi.hpp"

namespace fabricbench {

/// Through the library's messages from one rank to another.
class MpiDevice : public PlainMemory, public InterfaceTraffic {
 public:
  static constexpr Layer layer = Layer::mpi;
  static constexpr std::string_view door = "library";
  static constexpr bool has_flows = true;
  static constexpr bool has_stages = true;
  static constexpr std::array receives{Receive::library};
  template <Receive>
  using Path = MpiPath;

  explicit MpiDevice(const Attachment& attachment) : attachment_(attachment) {}
  template <Receive>
  MpiPath open(const Site& site) const {
    return {attachment_, site};
  }
  template <Receive>
  StagedMpi open_staged(const Site& site, const PlanProbe&) const {
    return {attachment_, site};
  }

 private:
  Attachment attachment_;
};

static_assert(Device<MpiDevice>);

}  // namespace fabricbench
