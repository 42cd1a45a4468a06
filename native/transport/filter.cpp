#include "transport/filter.hpp"

#include <arpa/inet.h>
#include <linux/filter.h>

#include <span>
#include <vector>

#include "core/failure.hpp"

namespace fabricbench {
namespace {

constexpr std::uint32_t whole_packet = 0xffffffff;

void attach(const Descriptor& socket, std::span<sock_filter> program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0) {
    fail_with_errno("setsockopt(SO_ATTACH_FILTER)");
  }
}

}  // namespace

void admit_only_token(const Descriptor& socket, std::uint32_t token, std::uint32_t offset) {
  // The token lies in the payload as this machine stores it; the filter reads big-endian.
  std::vector<sock_filter> program{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(token), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, whole_packet),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  attach(socket, program);
  drain(socket);
}

void admit_nothing(const Descriptor& socket) {
  std::vector<sock_filter> program{BPF_STMT(BPF_RET | BPF_K, 0)};
  attach(socket, program);
  drain(socket);
}

}  // namespace fabricbench
