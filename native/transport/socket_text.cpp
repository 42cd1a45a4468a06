#include "transport/socket_text.hpp"

#include <arpa/inet.h>

#include <charconv>

#include "core/failure.hpp"
#include "core/interface.hpp"

namespace fabricbench {

std::string endpoint_text(std::uint32_t address, std::uint16_t port) {
  return address_text(address) + ":" + std::to_string(port);
}

sockaddr_in parse_endpoint(std::string_view text) {
  const std::size_t colon = text.find(':');
  sockaddr_in result{};
  result.sin_family = AF_INET;
  std::uint16_t port = 0;
  bool is_good = colon != std::string_view::npos;
  if (is_good) {
    const std::string_view digits = text.substr(colon + 1);
    is_good = inet_pton(AF_INET, std::string(text.substr(0, colon)).c_str(), &result.sin_addr) == 1 &&
              std::from_chars(digits.data(), digits.data() + digits.size(), port).ec == std::errc();
  }
  if (!is_good) throw Failure(FailureCode::error, "the peer told an address that is none: '" + std::string(text) + "'");
  result.sin_port = htons(port);
  return result;
}

}  // namespace fabricbench
