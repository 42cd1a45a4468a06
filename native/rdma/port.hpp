// Which port of which RDMA device leads into the fabric, and by which of its addresses (GID), as sysfs tells:
// /sys/class/infiniband/DEVICE/ports/PORT with gids, gid_attrs/types and gid_attrs/ndevs
// (Documentation/ABI/stable/sysfs-class-infiniband of the kernel).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/interface.hpp"
#include "core/plan.hpp"
#include "core/rdma_attachment.hpp"
#include "rdma/verbs_abi.hpp"

namespace fabricbench {

struct RdmaPort {
  std::string device;
  int number = 1;
  bool is_ethernet = false;  // RoCE and iWARP: peers are known by their GID, on InfiniBand by their LID
  bool is_iwarp = false;
  int gid_index = 0;
  verbs::Gid gid{};
  int roce_version = 0;  // of that address; 0: InfiniBand or iWARP
  std::string netdev{};  // the network interface of that address, or beside the port; empty where there is none
  std::string driver{};  // `mlx5_core`, `rxe`, `siw`; empty where the kernel does not tell

  std::string name() const { return device + "/" + std::to_string(number); }
  RdmaTransport transport() const;
};

/// The port that `wanted` names, or else the one of the interface: with its address of RoCE v2 in the fabric's subnet
/// if it has one, then another of RoCE v2, then of v1. Failures name what there is.
/// @param root  of the file system that has /sys
RdmaPort find_rdma_port(const RdmaEnd& wanted, const std::optional<Interface>& interface,
                        const std::filesystem::path& root = "/");

/// What peers know a port by, as the kernel has it now: its address (GID), its LID and its partition key.
std::string port_identity(const RdmaPort& port, const std::filesystem::path& root = "/");

/// `fe80:0000:...`, as sysfs spells a GID; nothing for anything else.
std::optional<verbs::Gid> parse_gid(const std::string& text);
std::string gid_text(const verbs::Gid& gid);
/// The address of RoCE and iWARP that stands for an IPv4 address in host byte order, and the other way round.
verbs::Gid gid_of_ipv4(std::uint32_t address);
std::uint32_t ipv4_of(const verbs::Gid& gid);

}  // namespace fabricbench
