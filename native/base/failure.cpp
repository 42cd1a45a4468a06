#include "base/failure.hpp"

#include <array>
#include <cerrno>
#include <cstring>

namespace fabricbench {
namespace {

struct Meaning {
  int error_number;
  FailureCode code;
  std::string_view advice;
};

constexpr std::array meanings{
    Meaning{EPERM, FailureCode::permission, "run as root or grant CAP_NET_RAW"},
    Meaning{EACCES, FailureCode::permission, "run as root or grant CAP_NET_RAW"},
    Meaning{ENETUNREACH, FailureCode::unreachable, "check the routes and that the interface is up"},
    Meaning{EHOSTUNREACH, FailureCode::unreachable, "check the cable, the switch and the neighbour's address"},
    Meaning{ENETDOWN, FailureCode::unreachable, "bring the interface up"},
    Meaning{ENODEV, FailureCode::unreachable, "check the interface's name"},
    Meaning{ENXIO, FailureCode::unreachable, "check the interface's name"},
    Meaning{EADDRNOTAVAIL, FailureCode::unreachable, "check the fabric's subnet against the interface's addresses"},
    Meaning{ECONNREFUSED, FailureCode::unreachable, "the peer's endpoint is gone or a firewall rejects it"},
    Meaning{ECONNRESET, FailureCode::unreachable, "the peer's endpoint is gone"},
    Meaning{EPIPE, FailureCode::unreachable, "the peer's endpoint is gone"},
    Meaning{ETIMEDOUT, FailureCode::timeout, "check that a firewall lets the traffic through"},
    Meaning{EMSGSIZE, FailureCode::unsupported, "use a smaller message or a larger MTU"},
    Meaning{EAFNOSUPPORT, FailureCode::unsupported, "this kernel lacks the address family"},
    Meaning{EPROTONOSUPPORT, FailureCode::unsupported, "this kernel lacks the protocol"},
};

}  // namespace

void fail_with_errno(int error_number, std::string_view call, std::string_view advice) {
  Meaning meaning{error_number, FailureCode::error, "see the system's log"};
  for (const Meaning& known : meanings) {
    if (known.error_number == error_number) meaning = known;
  }
  if (!advice.empty()) meaning.advice = advice;
  const std::string verb = meaning.code == FailureCode::permission ? " was refused (" : " failed (";
  throw Failure(meaning.code,
                std::string(call) + verb + std::strerror(error_number) + "): " + std::string(meaning.advice));
}

void fail_with_errno(std::string_view call, std::string_view advice) { fail_with_errno(errno, call, advice); }

}  // namespace fabricbench
