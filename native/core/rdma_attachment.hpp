// How ranks are attached to the fabric by RDMA in a cell: through which port of which device, by which address, and
// what is in force on their paths. The record has it beside what was measured there (record/lines.py, RdmaAttachment).
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/vocabulary.hpp"

namespace fabricbench {

/// What a port speaks, by its node type, its link layer and the type of its address (GID).
enum class RdmaTransport { infiniband, roce_v1, roce_v2, iwarp };
template <>
inline constexpr std::array<std::string_view, 4> names_of<RdmaTransport>{"infiniband", "roce_v1", "roce_v2", "iwarp"};

struct RdmaAttachment {
  std::vector<int> ranks;  // of the launch, all attached alike
  std::string host;
  std::string device;
  int port = 1;
  std::string driver;  // `mlx5_core`, `rxe`; empty where the kernel does not tell
  RdmaTransport transport = RdmaTransport::infiniband;
  std::string netdev;  // the network interface of the address; empty where there is none
  int gid_index = 0;
  std::string gid;
  std::uint16_t lid = 0;         // of InfiniBand
  std::size_t port_mtu = 0;      // the largest packet that the port takes now
  std::size_t path_mtu = 0;      // the smallest in force on any of the paths; 0 of iWARP, where TCP cuts
  std::size_t inline_bytes = 0;  // what the queue pairs take inline, as the driver has granted it

  friend bool operator==(const RdmaAttachment&, const RdmaAttachment&) = default;
};

/// Add how ranks are attached: to others that are attached alike, else beside them.
void add_attachment(std::vector<RdmaAttachment>& all, const RdmaAttachment& more);

void to_json(nlohmann::json& value, const RdmaAttachment& attachment);
/// Throws json exceptions, and ControlError on an unknown word.
void from_json(const nlohmann::json& value, RdmaAttachment& attachment);

}  // namespace fabricbench
