#include "core/rdma_attachment.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/message.hpp"

namespace fabricbench {

void add_attachment(std::vector<RdmaAttachment>& all, const RdmaAttachment& more) {
  for (RdmaAttachment& one : all) {
    RdmaAttachment alike = more;
    alike.ranks = one.ranks;
    if (alike != one) continue;
    one.ranks.insert(one.ranks.end(), more.ranks.begin(), more.ranks.end());
    std::ranges::sort(one.ranks);
    one.ranks.erase(std::ranges::unique(one.ranks).begin(), one.ranks.end());
    return;
  }
  all.push_back(more);
}

void to_json(nlohmann::json& value, const RdmaAttachment& attachment) {
  value = {{"ranks", attachment.ranks},
           {"host", attachment.host},
           {"device", attachment.device},
           {"port", attachment.port},
           {"transport", name_of(attachment.transport)},
           {"gid_index", attachment.gid_index},
           {"gid", attachment.gid},
           {"port_mtu", attachment.port_mtu},
           {"inline_bytes", attachment.inline_bytes}};
  if (!attachment.driver.empty()) value["driver"] = attachment.driver;
  if (!attachment.netdev.empty()) value["netdev"] = attachment.netdev;
  if (attachment.lid != 0) value["lid"] = attachment.lid;
  if (attachment.path_mtu != 0) value["path_mtu"] = attachment.path_mtu;
}

void from_json(const nlohmann::json& value, RdmaAttachment& attachment) {
  value.at("ranks").get_to(attachment.ranks);
  value.at("host").get_to(attachment.host);
  value.at("device").get_to(attachment.device);
  value.at("port").get_to(attachment.port);
  const auto& word = value.at("transport").get_ref<const std::string&>();
  const auto transport = value_of<RdmaTransport>(word);
  if (!transport) throw ControlError("it has an unknown transport, " + word);
  attachment.transport = *transport;
  value.at("gid_index").get_to(attachment.gid_index);
  value.at("gid").get_to(attachment.gid);
  value.at("port_mtu").get_to(attachment.port_mtu);
  value.at("inline_bytes").get_to(attachment.inline_bytes);
  attachment.driver = value.value("driver", "");
  attachment.netdev = value.value("netdev", "");
  attachment.lid = value.value("lid", std::uint16_t{0});
  attachment.path_mtu = value.value("path_mtu", std::size_t{0});
}

}  // namespace fabricbench
